"""The nodes of a model file that skops builds objects from, read in its order before it does.

skops reads a node whose number it has read before as that earlier node, whatever it says. So a few nodes that refer to
one another stand for any number of them, and skops visits each way to each of them when it compares their names.
"""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]

DAMAGED = "the file is damaged or was changed; copy it again from its source"
MAX_VISITED = 10**6  # nodes, each as often as it is referred to; a schema of 64 MB has half as many


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
