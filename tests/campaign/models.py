"""Model files that were changed, or made up: altered bytes are refused, whatever a file says costs one sentence."""

import contextlib
import copy
import io
import json
import random
import tempfile
from functools import cache
from pathlib import Path

from checks.command import rows, run, write
from checks.model_files import read_parts, walk, write_parts
from checks.mutations import NAMES, VALUES, alter_bytes, alter_content

from kernelweave import load
from kernelweave.cli.errors import EXIT_CODES
from kernelweave.cli.harmless import ACTING
from kernelweave.errors import ErrorCode

LEARNERS = ("SVM", "harmonic", "SSMK", "RKDA", "LapSVM", "LearnedKernel", "cluster kernel", "logistic regression")
WELL = {0, EXIT_CODES[ErrorCode.BAD_MODEL], EXIT_CODES[ErrorCode.BAD_FEATURES]}  # 0: what changed does not matter
LOADERS = (
    *("ObjectNode", "ListNode", "TupleNode", "SetNode", "DictNode", "JsonNode", "NdArrayNode", "TypeNode", "SliceNode"),
    *("FunctionNode", "MethodNode", "PartialNode", "DTypeNode", "BytesNode", "SparseMatrixNode", "MaskedArrayNode"),
    *(
        "RandomStateNode",
        "RandomGeneratorNode",
        "ConstructorFromReduceNode",
        "OperatorFuncNode",
        "CachedNode",
        "NoNode",
    ),
)
MAX_DEPTH = 6


@cache
def folder():
    """A folder of this process, with a table."""
    path = Path(tempfile.mkdtemp(prefix="campaign-"))
    write(path / "in.csv", rows(n_labeled=40))
    return path


@cache
def make_model(learner):
    """A model that the command saved, of whatever learner."""
    path = folder() / f"{learner}.skops"
    code, said = call("label", folder() / "in.csv", "--target", "y", "--learner", learner, "--model", path, "--json")
    assert code == 0, said
    return path


def call(*words):
    """The exit code of the command, and what it printed to standard error and to standard output."""
    errors, out = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(out):
        code = run(*words)
    return code, (errors.getvalue(), out.getvalue())


def run_bytes(number):
    """Even cases have other bytes, odd ones other content with the right digest."""
    model = make_model(LEARNERS[number // 2 % len(LEARNERS)])
    changed = folder() / "changed.skops"
    if number % 2:
        alter_content(model, changed, number)
        return judge_prediction(changed)
    alter_bytes(model, changed, number)
    if changed.read_bytes() == model.read_bytes():  # the changes cancel
        return {"ended": "the same bytes"}
    try:
        load(changed)
    except ValueError as error:
        if "\n" not in str(error) and "changed.skops" in str(error):
            return {"ended": "refused"}
        return {"ended": "refused", "defect": f"a sentence without the file, or several: {error}"}
    return {"ended": "loaded", "defect": "other bytes were loaded"}


def judge_prediction(model):
    """How a prediction with a file ends: with labels, or with one sentence and nothing written."""
    out = folder() / "out.csv"
    out.unlink(missing_ok=True)
    code, (errors, printed) = call("predict", model, folder() / "in.csv", "-o", out, "--quiet")
    sentences = [line for line in errors.splitlines() if not line.startswith("note: ")]
    complaints = []
    if code not in WELL:
        complaints.append(f"exit code {code}")
    if len(sentences) != (code != 0):
        complaints.append(f"{len(sentences)} lines beside notes")
    if out.exists() != (code == 0) or list(folder().glob(".*.part")):
        complaints.append("the copy is there although it failed, or is not, or is half written")
    if ACTING.search((errors + printed).replace("\n", "")):
        complaints.append("what is printed acts on a terminal")
    ended = {"ended": "refused" if code else "predicted"}
    return ended | ({"defect": "; ".join(complaints) + f"\n{errors}"[-600:]} if complaints else {})


# Files by a grammar


def run_grammar(number):
    """A file with a generated description of a model; some parts are those of a model that was saved."""
    draw = random.Random(number)
    parts = read_parts(make_model(LEARNERS[number % len(LEARNERS)]))
    content = parts["schema.json"]["content"]
    names = [f"{node['__module__']}.{node['__class__']}" for node in walk(content["model"])] + NAMES
    grammar = Grammar(draw, list(walk(content["model"])), names, [name for name in parts if name != "schema.json"])
    if draw.random() < 0.5:  # a generated whole
        content["model"] = grammar.node(0)
    else:  # generated parts of a whole
        for node in draw.sample(grammar.known, min(len(grammar.known), draw.randint(1, 4))):
            new = grammar.node(MAX_DEPTH - 2)
            node.clear()
            node.update(new)
    if draw.random() < 0.2:
        content["about"] = grammar.node(2)
    made = folder() / "made.skops"
    with contextlib.suppress(ValueError, RecursionError):  # a description that holds itself is no JSON
        write_parts(made, parts)
        return judge_prediction(made)
    return {"ended": "not written"}


class Grammar:
    """Nodes of skops: a loader, a type, and content that mostly is of the kind that the loader reads."""

    def __init__(self, draw, known, names, files):
        self.draw, self.known, self.names, self.files = draw, known, names, files
        self.originals = copy.deepcopy(known)

    def node(self, depth):
        """A node with all below it."""
        draw = self.draw
        if draw.random() < 0.3:
            return copy.deepcopy(draw.choice(self.originals))
        loader = draw.choice(LOADERS if depth < MAX_DEPTH else ("JsonNode", "NdArrayNode", "TypeNode"))
        module, _, name = self.type_of(loader).rpartition(".")
        node = {"__class__": name, "__module__": module, "__loader__": loader, "__id__": draw.randrange(10**6)}
        node |= self.content_of(loader, depth + 1)
        if draw.random() < 0.05:
            node.pop(draw.choice(list(node)))
        if draw.random() < 0.05:
            node[draw.choice(list(node))] = draw.choice(VALUES)
        return node

    def type_of(self, loader):
        plain = {"JsonNode": "builtins.str", "ListNode": "builtins.list", "TupleNode": "builtins.tuple"}
        plain |= {"DictNode": "builtins.dict", "NdArrayNode": "numpy.ndarray", "SetNode": "builtins.set"}
        if loader in plain and self.draw.random() < 0.9:
            return plain[loader]
        return self.draw.choice(self.names)

    def content_of(self, loader, depth):
        draw = self.draw
        if loader == "JsonNode":
            return {"content": json.dumps(draw.choice(VALUES)), "is_json": True}
        if loader in ("NdArrayNode", "SparseMatrixNode", "BytesNode"):
            return {"type": draw.choice(["numpy", "json", "scipy", ""]), "file": draw.choice(self.files)}
        if loader in ("ListNode", "TupleNode", "SetNode"):
            return {"content": [self.node(depth) for _ in range(draw.randint(0, 3))]}
        if loader == "DictNode":
            keys = {str(draw.choice(VALUES)): self.node(depth) for _ in range(draw.randint(0, 3))}
            return {"content": keys, "key_types": self.node(depth)}
        if loader == "ObjectNode":
            return {"content": self.state(depth)}
        return {"content": draw.choice([self.node(depth), {"func": self.node(depth)}, draw.choice(VALUES)])}

    def state(self, depth):
        """The attributes of an object: those of a model that was saved, some generated, or none."""
        objects = [node for node in self.originals if node["__loader__"] == "ObjectNode" and node.get("content")]
        state = copy.deepcopy(self.draw.choice(objects)["content"])
        inner = state.get("content") if isinstance(state, dict) else None
        if isinstance(inner, dict) and inner:
            for name in self.draw.sample(list(inner), min(len(inner), 2)):
                inner[name] = self.node(depth)
        return state
