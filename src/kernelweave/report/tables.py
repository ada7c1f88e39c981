r"""Join printed numbers and records: mean, deviation, difference, verdict.

With printed value :math:`p` and our mean :math:`m` over :math:`n` trials of standard deviation :math:`s`, the standard
error of the difference is :math:`\sqrt{s^2 / n + s_p^2 / n_p}`, where the second part stands if the paper prints a
deviation and a number of trials. A cell is *equal* if the difference is within one standard error, or within half a
unit of the last printed digit; else it is *better* or *worse*. Cells on generated data are not judged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

VERDICTS = ("better", "equal", "worse")


@dataclass(frozen=True)
class Compared:
    """One measure of one row and method: what is printed, what we get, and how they compare.

    ``verdict`` is one of ``VERDICTS``, or empty where there is nothing to compare. ``status`` is ``"done"``,
    ``"missing"`` (no record), ``"failed"`` (records with an error only) or ``"none"`` (the method has no such number).
    """

    row: str
    method: str
    measure: str
    status: str
    printed: float | None = None
    printed_sd: float | None = None
    mean: float | None = None
    sd: float | None = None
    trials: int = 0
    difference: float | None = None
    verdict: str = ""
    why: str = ""


@dataclass(frozen=True)
class ItemTable:
    """All compared numbers of an item, with what a reader must know of its records.

    ``n_done``: how many trials of a row and method have values, of the ``n_trials`` that the item has.
    """

    item: dict[str, Any]
    methods: tuple[str, ...]
    cells: dict[tuple[str, str, str], Compared]
    n_done: dict[tuple[str, str], int]
    fast: bool
    generated: bool
    errors: tuple[str, ...]
    warnings: tuple[str, ...]

    def count(self, verdict: str) -> int:
        """Return how many cells have this verdict."""
        return sum(cell.verdict == verdict for cell in self.cells.values())

    @property
    def n_trials(self) -> int:
        """Trials of a whole run, or of a fast one."""
        return int(self.item["fast_trials" if self.fast else "trials"])

    @property
    def n_missing(self) -> int:
        """Pairs of row and method without a value."""
        return sum(n == 0 for n in self.n_done.values())

    @property
    def partial(self) -> list[int]:
        """Numbers of trials of those pairs of row and method that have some, and not all."""
        return sorted(n for n in self.n_done.values() if 0 < n < self.n_trials)

    def lacking(self, cell: Compared) -> bool:
        """Say whether a cell rests on fewer trials than the item has."""
        return cell.trials < self.n_trials

    @property
    def worse(self) -> list[Compared]:
        """Cells that are worse than printed, in the order of the table."""
        return [cell for cell in self.cells.values() if cell.verdict == "worse"]


def join(item: dict[str, Any], records: Sequence[dict[str, Any]]) -> ItemTable:
    """Return the table of an item from its description and its records (of this item, one a cell)."""
    outside = dict.fromkeys(r["method"] for r in records if r["method"] not in item["methods"])
    methods = (*item["methods"], *outside)
    absent = {tuple(pair) for pair in item["absent"]}
    generated = any(record.get("data") == "generated" for record in records)
    cells, n_done = {}, {}
    for row in item["rows"]:
        for method in methods:
            mine = _select_records(records, row, method)
            if (row, method) in absent or (method in outside and not mine):
                continue
            n_done[row, method] = sum("error" not in record for record in mine)
            for measure in item["measures"]:
                cells[row, method, measure["name"]] = compare(item, measure, row, method, mine, generated)
    failed = (f"{r['row']}, {r['method']}, trial {r['trial']}: {r['error']}" for r in records if "error" in r)
    said = (text for record in records for text in record.get("warnings", ()))
    return ItemTable(
        item,
        methods,
        cells,
        n_done,
        any(record["fast"] for record in records),
        generated,
        tuple(failed),
        tuple(dict.fromkeys(said)),
    )


def compare(
    item: dict[str, Any],
    measure: dict[str, Any],
    row: str,
    method: str,
    records: Sequence[dict[str, Any]],
    generated: bool = False,
) -> Compared:
    """Return one measure of a row and method from its records."""
    name = measure["name"]
    printed, printed_sd = _find_printed(item["published"], row, method, name)
    known: dict[str, Any] = {"row": row, "method": method, "measure": name}
    known |= {"printed": printed, "printed_sd": printed_sd}
    done = [record["values"] for record in records if "error" not in record]
    if not done:
        lacking = "failed" if records else "missing"
        return Compared(status=lacking, **known)
    values = [float(v[name]) for v in done if isinstance(v.get(name), int | float)]
    if not values:
        return Compared(status="none", **known)
    mean, sd = fmean(values), stdev(values) if len(values) > 1 else None
    known |= {"mean": mean, "sd": sd, "trials": len(values)}
    if printed is None:
        return Compared(status="done", **known)
    difference, verdict, why = mean - printed, "", ""
    if measure["better"] is not None and not generated:
        n_printed = item["published"].get("trials")
        margin = max(standard_error(sd, len(values), printed_sd, n_printed), 0.5 * 10.0 ** -measure["digits"])
        verdict = judge(difference, margin, measure["better"])
    if verdict == "worse":
        why = reason(item["why"], row, method)
    return Compared(status="done", difference=difference, verdict=verdict, why=why, **known)


def standard_error(sd: float | None, n: int, printed_sd: float | None, n_printed: int | None) -> float:
    """Return the standard error of the difference, from the parts that are known.

    Examples
    --------
    >>> round(standard_error(3.0, 9, 4.0, 16), 3), standard_error(None, 1, None, None)
    (1.414, 0.0)
    """
    ours = sd**2 / n if sd is not None else 0.0
    theirs = printed_sd**2 / n_printed if printed_sd is not None and n_printed else 0.0
    return math.sqrt(ours + theirs)


def judge(difference: float, margin: float, better: str) -> str:
    """Return ``"better"``, ``"equal"`` or ``"worse"`` for a difference (ours minus printed) and what counts as none.

    Examples
    --------
    >>> judge(-2.0, 1.0, "lower"), judge(-2.0, 1.0, "higher"), judge(0.5, 1.0, "lower")
    ('better', 'worse', 'equal')
    """
    if abs(difference) <= margin * (1 + 1e-9):
        return "equal"
    return "better" if (difference < 0) == (better == "lower") else "worse"


def reason(why: Sequence[Sequence[str]], row: str, method: str) -> str:
    """Return the sentence for a row and method; one that names both goes before one with ``"*"``.

    Examples
    --------
    >>> reason([["*", "SVM", "a"], ["sonar", "SVM", "b"]], "sonar", "SVM"), reason([["*", "SVM", "a"]], "wine", "SVM")
    ('b', 'a')
    """
    fitting = [(r, m, text) for r, m, text in why if r in (row, "*") and m in (method, "*")]
    best = min(fitting, key=lambda place: (place[0] == "*") + (place[1] == "*"), default=("", "", ""))
    return best[2]


def _select_records(records: Sequence[dict[str, Any]], row: str, method: str) -> list[dict[str, Any]]:
    return [record for record in records if (record["row"], record["method"]) == (row, method)]


def _find_printed(published: dict[str, Any], row: str, method: str, name: str) -> tuple[float | None, float | None]:
    printed = published.get("rows", {}).get(row, {}).get(method, {}).get(name)
    if isinstance(printed, list):
        return float(printed[0]), float(printed[1])
    return (None if printed is None else float(printed)), None
