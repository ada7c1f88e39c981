"""The nodes of a model file that skops builds objects from, read in its order before it does.

skops reads a node whose number it has read before as that earlier node, whatever it says. So a few nodes that refer to
one another stand for any number of them, and skops visits each way to each of them when it compares their names.
"""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]

DAMAGED = "the file is damaged or was changed; copy it again from its source"
MAX_SEEDS = 100  # whole numbers that a generator of random numbers starts from
MAX_DIGITS = 12  # of a length
POOL_SIZE = "4"  # of its seeds, as numpy has it: mixing them takes the square of this
SEED_PARTS = {"entropy", "spawn_key", "pool_size", "n_children_spawned"}
MAX_VISITED = 10**6  # nodes, each as often as it is referred to; a schema of 64 MB has half as many
# Each node that skops builds keeps a list of the names in the file, after some of its own: 8 bytes for each name.
OWN_NAMES = {"ObjectNode": 300, "FunctionNode": 350, "NdArrayNode": 40}
MAX_NAMES = 10**8  # 0.8 GB; 0.5 million nodes may have 200 types, and models have 30


class NodeReader:
    """Reads nodes as skops does.

    Attributes
    ----------
    nodes : list of dict
        Those that skops builds, each once.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._first: dict[int, Node] = {}  # node by number
        self._n_visited: dict[int, int] = {}  # by number; 0 while its parts are read

    def read(self, node: Any) -> int:
        """Return how many nodes skops visits from here on; refuse nodes that hold themselves, and too many."""
        if not isinstance(node, dict) or not isinstance(node.get("__loader__"), str):
            raise ValueError(f"an object refers to another without describing it; {DAMAGED}")
        number = node.get("__id__", 0)
        if type(number) is not int:
            raise ValueError(f"an object has the number {number!r:.20}; {DAMAGED}")
        if number in self._n_visited:
            if not self._n_visited[number]:
                raise ValueError(f"an object holds itself; {DAMAGED}")
            return self._n_visited[number]
        if number:
            self._first[number], self._n_visited[number] = node, 0
        self.nodes.append(node)
        n_visited = 1 + sum(map(self.read, list_parts(node)))
        if n_visited > MAX_VISITED:
            raise ValueError(f"its objects refer to one another more than {MAX_VISITED:,} times; {DAMAGED}")
        if number:
            self._n_visited[number] = n_visited
        return n_visited

    def resolve(self, node: Node) -> Node:
        """Return the node that skops builds in place of one that was read."""
        return self._first.get(node.get("__id__", 0), node)

    def check(self) -> None:
        """Refuse nodes whose parts are not those that skops writes: numpy would expand them, or call them."""
        masked: set[int] = set()
        for node in self.nodes:
            if node["__loader__"] == "JsonNode":
                _check_value(node)
            elif node["__loader__"] == "DictNode":
                self._check_keys(node)
            elif node["__loader__"] == "NdArrayNode" and node.get("type") == "json":
                self._check_object_array(node)
            elif node["__loader__"] == "MaskedArrayNode":
                self._check_masked(node, masked)
            elif node["__loader__"] == "RandomGeneratorNode":
                self._check_seeds(node)

    def list_names(self) -> list[str]:
        """Return the names of the types that are built; refuse more than the nodes have memory for."""
        names = sorted(set(map(name_type, self.nodes)))
        n_names = sum(len(names) + OWN_NAMES.get(node["__loader__"], 0) for node in self.nodes)
        if n_names > MAX_NAMES:
            raise ValueError(f"it holds {len(self.nodes):,} objects of {len(names):,} types; {DAMAGED}")
        return names

    def _parts(self, node: Node) -> list[Node]:
        return [self.resolve(part) for part in list_parts(node)]

    def _check_keys(self, node: Node) -> None:
        """Refuse keys whose types are none: what stands there is called with each key."""
        types = self._parts(node)[0]
        is_list = types["__loader__"] == "ListNode"
        _demand(is_list and all(part["__loader__"] == "TypeNode" for part in self._parts(types)), "a dict has no keys")

    def _check_object_array(self, node: Node) -> None:
        """Refuse an array of objects that is larger than its items: numpy also expands lists and arrays in these."""
        *items, shape = self._parts(node)
        is_shape = shape["__loader__"] == "TupleNode" and name_type(node) == "numpy.ndarray"
        lengths = [_read_count(part) for part in self._parts(shape)] if is_shape else []
        _demand(len(lengths) > 0 and len(items) == lengths[0], "an array has other items than places")
        if len(lengths) == 1:  # each item is assigned as it is
            return
        for length in lengths[1:]:
            are_lists = all(item["__loader__"] == "ListNode" for item in items)
            _demand(are_lists and all(len(item["content"]) == length for item in items), "an array is no grid")
            items = [part for item in items for part in self._parts(item)]
        _demand(all(map(_is_scalar, items)), "an array has items that are arrays")

    def _check_masked(self, node: Node, masked: set[int]) -> None:
        """Refuse masks of other than an array, and several of one array: numpy makes a mask as large as the array."""
        data, mask = self._parts(node)
        _demand(data["__loader__"] == "NdArrayNode" and id(data) not in masked, "a mask is not that of an array")
        _demand(mask["__loader__"] in ("NdArrayNode", "JsonNode"), "a mask is not that of an array")
        masked.add(id(data))

    def _check_seeds(self, node: Node) -> None:
        """Refuse seeds that take numpy long to mix."""
        _, seeds = self._parts(node)
        is_dict = seeds["__loader__"] == "DictNode" and seeds["content"].keys() <= SEED_PARTS
        _demand(is_dict, "a generator of random numbers has no seeds")
        parts = {name: self.resolve(part) for name, part in seeds["content"].items()}
        pool_size = parts.pop("pool_size", {"content": POOL_SIZE})
        _demand(pool_size.get("content") == POOL_SIZE, "a generator of random numbers has another pool of seeds")
        for part in parts.values():
            numbers = self._parts(part) if part["__loader__"] in ("ListNode", "TupleNode") else [part]
            is_short = len(numbers) <= MAX_SEEDS and all(number["__loader__"] == "JsonNode" for number in numbers)
            _demand(is_short, "a generator of random numbers has seeds that are not loaded from files")


def _check_value(node: Node) -> None:
    """Refuse lists and dicts in place of a number or a text, for which skops has nodes of their own."""
    content = node.get("content")
    is_text = isinstance(content, str) and not content.lstrip().startswith(("[", "{"))
    _demand(is_text, "a value is neither a number nor a text")


def _read_count(node: Node) -> int:
    """Return a length that a node says; -1 where it says none."""
    content = node.get("content") if node["__loader__"] == "JsonNode" else None
    return int(content) if isinstance(content, str) and content.isdecimal() and len(content) < MAX_DIGITS else -1


def _is_scalar(node: Node) -> bool:
    """Return whether numpy takes an object for one value."""
    loader = node["__loader__"]
    return loader == "JsonNode" or (loader == "NdArrayNode" and name_type(node) != "numpy.ndarray")


def name_type(node: Node) -> str:
    """Return the name of the type, or of the function, that a node is built from."""
    return f"{node['__module__']}.{node['__class__']}"


def _demand(is_right: bool, what: str) -> None:
    if not is_right:
        raise ValueError(f"{what}; {DAMAGED}")


def list_parts(node: Node) -> list[Any]:
    """Return the nodes that skops reads as parts of a node, in its order."""
    loader, content = node["__loader__"], node.get("content")
    if loader in ("ListNode", "TupleNode", "SetNode"):
        return _require(content, list)
    if loader == "DictNode":
        return [node.get("key_types"), *_require(content, dict).values()]
    if loader == "NdArrayNode" and node.get("type") == "json":
        return [*_require(content, list), node.get("shape")]
    if loader == "MaskedArrayNode":
        return _list_values(content, "data", "mask")
    if loader == "RandomGeneratorNode":
        return _list_values(content, "bit_generator", "seed_seq")
    is_part = loader in ("RandomStateNode", "DTypeNode") or (loader == "ObjectNode" and content is not None)
    return [content] if is_part else []


def _list_values(content: Any, *names: str) -> list[Any]:
    return [_require(content, dict).get(name) for name in names]


def _require(content: Any, kind: type) -> Any:
    if not isinstance(content, kind):
        raise ValueError(f"the parts of an object are no {kind.__name__}; {DAMAGED}")
    return content
