"""Model files as an attacker would write them: any content, with the right digest."""

import io
import json
import zipfile
from importlib.metadata import version

import numpy as np
import pytest

from kernelweave.persistence.archive import make_compact
from kernelweave.persistence.seal import FORMAT, add_seal

skops = pytest.importorskip("skops")
pytest.importorskip("skops.io")


def read_parts(path):
    """The entries of a model file, by name; the schema is parsed."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return {**parts, "schema.json": json.loads(parts["schema.json"])}


def write_parts(path, parts, sealed=True, compression=zipfile.ZIP_STORED):
    """Write entries as a model file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, json.dumps(content) if name == "schema.json" else content)
    path.write_bytes(add_seal(file.getvalue()) if sealed else file.getvalue())


def forge(path, model):
    """Write any object as a model file, without the checks of `save`."""
    content = {"format": FORMAT, "about": {}, "versions": {"scikit-learn": version("scikit-learn")}, "model": model}
    path.write_bytes(add_seal(make_compact(skops.io.dumps(content))))


def craft(path, change=lambda node: node, **arrays):
    """Rewrite a model file: how its schema describes the model, and arrays of its sparse matrices."""
    parts = read_parts(path)
    content = parts["schema.json"]["content"]
    content["model"] = change(content["model"])
    for name in [name for name in parts if name.endswith(".npz") and arrays]:
        parts[name] = as_bytes(np.savez, **{**np.load(io.BytesIO(parts[name])), **arrays})
    write_parts(path, parts)


def as_bytes(save, *values, **named):
    """What a function of numpy writes."""
    file = io.BytesIO()
    save(file, *values, **named)
    return file.getvalue()


def named(node, name, loader):
    """The node as one of another type and loader."""
    module, _, attribute = name.rpartition(".")
    return {**node, "__module__": module, "__class__": attribute, "__loader__": loader}


def as_json(value):
    """A node of a number or a text."""
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value)}


def as_items(items, name="builtins.list", loader="ListNode"):
    """A node of a list, or of what else has items."""
    return named({"content": items}, name, loader)


def refer_again(depth, width=2):
    """A node that stands for ``width ** depth`` nodes: each list holds the last one, and refers to it again."""
    node = as_json(1)
    for number in range(1, depth + 1):
        same = {**as_json(0), "__id__": number}  # skops reads it as the node of this number
        node = as_items([{**node, "__id__": number}, *[same] * (width - 1)])
    return node


def walk(item):
    """All nodes of a schema."""
    if isinstance(item, dict):
        if isinstance(item.get("__loader__"), str):
            yield item
        for part in item.values():
            yield from walk(part)
    elif isinstance(item, list):
        for part in item:
            yield from walk(part)
