"""The tables and figures of five papers, computed anew beside what is printed.

One file a paper says what is computed; ``definition`` says what a table is, ``runner`` runs its cells. ``PAPERS``, from
the name on the command line to the paper, is made when first used: the definitions import every estimator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .definition import Cell, Item, Measure, Panel, Paper

if TYPE_CHECKING:
    PAPERS: dict[str, Paper]

# One module a paper, in the order of the report; each has a PAPER.
MODULES = (
    "cg_boost",
    "ssmk",
    "tsvm_mkl",
    "rkda",
    "label_aware",
)

__all__ = ["PAPERS", "Cell", "Item", "Measure", "Panel", "Paper"]


def __getattr__(name: str) -> Any:
    if name != "PAPERS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    papers = (import_module(f"{__name__}.{module}").PAPER for module in MODULES)
    globals()["PAPERS"] = {paper.name: paper for paper in papers}
    return globals()["PAPERS"]
