"""Random changes of a model file, each with a seed: of single bytes, and of what it says, with the right digest.

Run as a program, it has the command predict with every file of a folder, and prints how each ended.
"""

import contextlib
import io
import json
import random
import sys
from pathlib import Path

import numpy as np
from checks.command import run
from checks.model_files import as_bytes, read_parts, walk, write_parts

VALUES = [None, True, -1, 0, 3, 10**30, 1e308, "NaN", "", "text", "%Y" * 50, [], {}, [[1]], {"a": 1}]
NAMES = [
    "numpy.ndarray",
    "builtins.list",
    "kernelweave.kernels.pointwise.RBF",
    "sklearn.pipeline.Pipeline",
    "os.system",
]


def alter_bytes(path, out, seed):
    """Write the file with one to eight other bytes."""
    draw, data = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 8)):
        place = draw.randrange(len(data))
        data[place] = (data[place] + draw.randint(1, 255)) % 256
    out.write_bytes(data)


def alter_content(path, out, seed):
    """Write the file with one to three other values, and the digest of what it then holds."""
    draw, parts = random.Random(seed), read_parts(path)
    nodes = list(walk(parts["schema.json"]["content"]["model"]))
    for _ in range(draw.randint(1, 3)):
        draw.choice(CHANGES)(draw, draw.choice(nodes), nodes, parts)
    write_parts(out, parts)


def alter_array(draw, node, nodes, parts):
    """Change the values, the type or the shape of an array."""
    name = draw.choice([name for name in parts if name.endswith(".npy")])
    try:
        array = np.load(io.BytesIO(parts[name]))
    except ValueError:  # what was altered before is no array any more
        return
    if array.dtype.kind in "fiu" and array.size:
        flat = array.ravel()
        flat[draw.randrange(flat.size)] = draw.choice([-1, 0, 127, np.nan if array.dtype.kind == "f" else 99])
    change = draw.choice([lambda a: a, lambda a: a[:1], lambda a: a.T, lambda a: a.ravel(), lambda a: a.astype("U8")])
    parts[name] = as_bytes(np.save, change(np.atleast_1d(array)))


def alter_header(draw, node, nodes, parts):
    """Change bytes of an array with its header."""
    name = draw.choice([name for name in parts if name.endswith(".npy")])
    data = bytearray(parts[name])
    data[draw.randrange(len(data))] = draw.randrange(256)
    parts[name] = bytes(data)


def alter_value(draw, node, nodes, parts):
    """Change a text, a number or another plain value."""
    plain = [each for each in nodes if each.get("__loader__") == "JsonNode"]
    draw.choice(plain)["content"] = json.dumps(draw.choice(VALUES))


def alter_type(draw, node, nodes, parts):
    """Give an object another type."""
    node["__module__"], _, node["__class__"] = draw.choice([*NAMES, *NAMES[:1]]).rpartition(".")


def exchange(draw, node, nodes, parts):
    """Put one object in the place of another."""
    other = json.loads(json.dumps(draw.choice(nodes)))
    node.clear()
    node.update(other)


def remove(draw, node, nodes, parts):
    """Remove a part of an object, or an entry."""
    if draw.random() < 0.2:
        del parts[draw.choice([name for name in parts if name != "schema.json"])]
        return
    content = node.get("content")
    if isinstance(content, dict | list) and content:
        del content[draw.choice(list(content)) if isinstance(content, dict) else draw.randrange(len(content))]
    else:
        node.pop(draw.choice(list(node)))


CHANGES = [alter_array, alter_array, alter_header, alter_value, alter_value, alter_type, exchange, remove]


def main(folder, table):
    for path in sorted(folder.glob("*.skops")):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            try:
                code = run("predict", path, table, "-o", folder / "out.csv", "--quiet")
            except Exception as error:  # noqa: BLE001 - what the test looks for
                code = f"{type(error).__name__}: {error}"
        print(json.dumps([path.name, code, errors.getvalue()]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
