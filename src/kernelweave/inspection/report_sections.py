"""The sections of a page about a fitted model; each is left out where the model has nothing to say on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..report.content import Cell, Fact, Section, Share, Table, tabulate
from ..short_text import format_number
from .certificate import CertificateDisplay
from .fit_evidence import FitEvidence
from .kernel_weights import KernelWeightsDisplay
from .label_map import LabelMapDisplay
from .leaderboard import LeaderboardDisplay
from .reliability import ReliabilityDisplay

MAX_CLASSES = 20  # of a confusion matrix
N_SUSPECTS, N_NEXT, N_KERNELS = 15, 15, 15  # lines of a table
INCHES_OF_FRAME, INCHES_OF_LINE = 1.4, 0.27  # of a drawing with one name a line
INCHES, MAP_INCHES = (6.4, 4.0), (7.0, 5.2)
NO_DRAWING = (TypeError, ValueError, AttributeError)  # of a Display that a model has nothing for
SHARES = (0.25, 0.5, 0.75, 0.9, 1.0)  # of the rows, in the table of absolute errors
LEADERBOARD = {
    "candidate": "candidate",
    "error": "error",
    "standard_error": "standard error",
    "weight": "weight",
    "seconds": "seconds",
    "size": "size",
    "uses_unlabeled": "uses unlabelled rows",
    "status": "status",
}


def list_facts(fit: FitEvidence) -> Iterator[Fact]:
    """Yield the numbers at the top of a page."""
    error = fit.held_out.error
    if fit.n_unlabeled:
        yield Fact(f"{fit.n_unlabeled:,}", "labels filled in", f"from {fit.n_labeled:,} that were given")
    if error is not None and fit.has_classes:
        interval = f"95 % interval {100 * error.low:.1f} to {100 * error.high:.1f} %, {error.n_rows} held-out rows"
        yield Fact(f"{100 * error.value:.1f} %", "wrong labels, expected", interval)
    elif error is not None:
        interval = f"95 % interval {format_number(error.low)} to {format_number(error.high)}"
        yield Fact(format_number(error.value), "root mean squared error", f"{interval}{_relate(fit)}")
    helped = fit.unlabeled_helped
    if helped is not None:
        short = {"unlabelled rows helped": "Yes", "unlabelled rows hurt": "No"}.get(helped.verdict, "Unclear")
        values = (0.0 - helped.difference, 0.0 - helped.high, 0.0 - helped.low)
        change, low, high = (_sign(each, fit.has_classes) for each in values)
        what = "points of error" if fit.has_classes else "of the error"
        yield Fact(short, "did unlabelled rows help?", f"{change} {what} by them, 95 % interval {low} to {high}")
    certificate = getattr(_certified(fit.model), "certificate_", None)
    if certificate is not None:
        is_bound = certificate.kind == "duality gap"
        name = "distance from the optimum, at most" if is_bound else str(certificate.kind)
        yield Fact(f"{certificate.relative:.1e}", name, "relative, by a duality gap" if is_bound else "relative")


def _relate(fit: FitEvidence) -> str:
    """Return the share of the variance that is explained, where there is a variance."""
    variance = float(np.var(np.asarray(fit.held_out.given, dtype=float)))
    if variance <= 0 or fit.held_out.error is None:
        return ""
    return f", R² {1.0 - fit.held_out.error.value**2 / variance:.2f}"


def _sign(value: float, is_share: bool) -> str:
    return f"{100 * value:+.1f}" if is_share else format_number(value, 3, sign=True)


def list_cautions(fit: FitEvidence) -> Iterator[str]:
    """Yield what a reader must know before the numbers."""
    error = fit.held_out.error
    if error is None:
        yield "Too few rows have labels to hold some out: nothing is known about the error."
    elif fit.has_classes:
        counts = np.unique(fit.held_out.given, return_counts=True)[1]
        guess = 1.0 - counts.max() / counts.sum()
        if error.value >= guess:
            yield f"The labels are no better than the most frequent class, which is wrong in {100 * guess:.1f} %."
    status = getattr(_certified(fit.model), "status_", None)
    if status is not None and not status.converged:
        yield str(status.value)


def _certified(model: Any) -> Any:
    """Return the single model that a certificate and kernels are shown of."""
    best = getattr(model, "best_estimator_", None)
    return model if best is None else best


def _learned(fit: FitEvidence) -> Iterator[Section]:
    model = fit.model
    if fit.sentences is not None:
        yield Section("What was learned", tuple(fit.sentences))
        return
    texts = [f"{type(model).__name__}: {str(type(model).__doc__ or '').strip().splitlines()[0]}"]
    texts += [f"{model.certificate_}."] if hasattr(model, "certificate_") else []
    yield Section("What was learned", tuple(texts))


def _candidates(fit: FitEvidence) -> Iterator[Section]:
    if not hasattr(fit.model, "leaderboard_"):
        return
    text = (
        "Every candidate was fitted to all labels, and again with the labels of some rows hidden; the errors are those "
        "on hidden labels. The weights are those of the mixture that fills in the labels."
    )

    def plot(ax: Any) -> None:
        LeaderboardDisplay.from_estimator(fit.model, unit=fit.unit, ax=ax)
        _fit_height(ax, min(len(fit.leaderboard), 20))

    drawing = draw(plot, "candidates", "Errors of candidates")
    shares = ("weight", "error", "standard_error") if fit.has_classes else ("weight",)
    table = tabulate("Candidates, the largest weight first", fit.leaderboard, LEADERBOARD, shares)
    yield Section("Candidates", (text,), drawing, (table,))


def _errors(fit: FitEvidence) -> Iterator[Section]:
    given, predicted = fit.held_out.given, fit.held_out.predicted
    if fit.held_out.error is None:
        return
    if not fit.has_classes:
        errors = np.abs(np.asarray(predicted, dtype=float) - np.asarray(given, dtype=float))
        quantiles = tuple((f"{share:.0%}", float(np.quantile(errors, share))) for share in SHARES)
        table = Table("Absolute error on held-out rows", ("share of the rows", "error is at most"), quantiles)
        yield Section("Errors", (), (), (table,))
        return
    classes, counts = np.unique(given, return_counts=True)
    shown = classes[np.argsort(-counts, kind="stable")[:MAX_CLASSES]]
    shown = classes[np.isin(classes, shown)]
    lines: list[tuple[Cell, ...]] = []
    for each in shown:
        mine = predicted[given == each]
        cells = [int(np.sum(mine == other)) for other in shown]
        lines.append((str(each), *cells, len(mine), Share(np.mean(mine != each))))
    more = len(classes) - len(shown)
    texts = ["A row of the table is a given class, a column what models say that have not seen the label."]
    texts += [f"{more} rarer classes are not shown."] if more else []
    head = ("given", *(f"{each}" for each in shown), "rows", "share wrong")
    table = Table("Given classes and predictions for held-out rows", head, tuple(lines))
    yield Section("Errors", tuple(texts), (), (table,))


def _calibration(fit: FitEvidence) -> Iterator[Section]:
    drawings = draw(lambda ax: ReliabilityDisplay.from_estimator(fit.model, ax=ax), "calibration", "Calibration curve")
    if drawings:
        text = "Of the rows whose class has some probability, that share should be right: points on the diagonal."
        yield Section("Are the probabilities right?", (text,), drawings)


def _kernels(fit: FitEvidence) -> Iterator[Section]:
    found: list[Any] = []

    def plot(ax: Any) -> None:
        found.append(KernelWeightsDisplay.from_estimator(fit.model, ax=ax))
        n_sources = len(set(found[0].sources))
        _fit_height(ax, min(len(found[0].names), N_KERNELS + 1) + (n_sources + 2 if n_sources > 1 else 0))

    drawings = draw(plot, "kernels", "Shares of kernels")
    if not drawings:
        return
    display = found[0]
    order = np.argsort(-display.shares, kind="stable")[:N_KERNELS]
    lines = tuple((display.names[k], display.sources[k], Share(display.shares[k])) for k in order)
    more = len(display.names) - len(lines)
    inside = _certified(fit.model) is not fit.model
    texts = [f"Of the best single model with a certificate, {type(_certified(fit.model)).__name__}."] if inside else []
    texts += [f"{more} further kernels have smaller shares."] if more else []
    table = Table("Shares", ("kernel", "source", "share"), lines)
    yield Section("Kernels and sources", tuple(texts), drawings, (table,))


def _map(fit: FitEvidence) -> Iterator[Section]:
    drawings = draw(
        lambda ax: LabelMapDisplay.from_estimator(fit.model, fit.X, fit.y, center=fit.center, unit=fit.unit, ax=ax),
        "map",
        "Map of the rows",
        MAP_INCHES,
    )
    if drawings:
        text = "Rows that are near each other here are similar to the model: two directions of its learned kernel."
        yield Section("Map of the rows", (text,), drawings)


def _convergence(fit: FitEvidence) -> Iterator[Section]:
    members = [("", fit.model)] if not hasattr(fit.model, "members_") else []
    members += [(member.name, member.model) for member in getattr(fit.model, "members_", [])]
    lines = []
    for name, model in members:
        certificate = getattr(model, "certificate_", None)
        if certificate is not None:
            shown = name or type(model).__name__
            gap, kind = float(certificate.gap), str(certificate.kind)
            lines.append((shown, kind, gap, float(certificate.relative), str(model.status_.value)))
    if not lines:
        return
    drawings = draw(lambda ax: CertificateDisplay.from_estimator(fit.model, ax=ax), "certificate", "Gap along the fit")
    text = (
        "A certificate is a bound that was computed apart from the solver: the objective is within the gap of the best."
    )
    head = ("model", "certificate", "gap", "relative", "status")
    yield Section("Convergence and certificates", (text,), drawings, (Table("Certificates", head, tuple(lines)),))


def _suspects(fit: FitEvidence) -> Iterator[Section]:
    if not hasattr(fit.model, "suspect_labels") or fit.held_out.error is None:
        return
    lines: list[tuple[Cell, ...]] = []
    for each in fit.model.suspect_labels(N_SUSPECTS):
        given, suggested = fit.name_label(each["given"]), fit.name_label(each["suggested"])
        lines.append((fit.name_row(each["row"]), given, suggested, float(each["score"])))
    text = "Given labels that models contradict which have not seen them, the most doubtful first. Some will be right."
    table = Table("Look at these first", ("row", "given", "suggested", "score"), tuple(lines))
    yield Section("Doubtful labels", (text,), (), (table,))


def _next_rows(fit: FitEvidence) -> Iterator[Section]:
    if not hasattr(fit.model, "label_next") or not fit.n_unlabeled:
        return
    rows = fit.model.label_next(N_NEXT).tolist()
    guesses = fit.model.transduction_[rows]
    chances = fit.model.label_distributions_[rows].max(axis=1)
    lines = tuple(
        (fit.name_row(row), fit.name_label(guess), Share(chance))
        for row, guess, chance in zip(rows, guesses, chances, strict=True)
    )
    text = "Labels of these rows would teach the model most: it is unsure of them, and they are far from one another."
    yield Section("Rows to label next", (text,), (), (Table("In this order", ("row", "guess", "probability"), lines),))


def _fit_height(ax: Any, n_lines: int) -> None:
    """Give a drawing with one name a line the height that these need."""
    ax.figure.set_figheight(INCHES_OF_FRAME + INCHES_OF_LINE * n_lines)


SECTIONS = (_learned, _candidates, _errors, _calibration, _kernels, _map, _convergence, _suspects, _next_rows)


def draw(plot: Callable[[Any], object], prefix: str, label: str, size: tuple[float, float] = INCHES) -> tuple[str, ...]:
    """Return a drawing as SVG; nothing where the model has nothing to draw."""
    from ..report.drawing import draw_svg

    try:
        return (draw_svg(plot, prefix, label, size),)
    except NO_DRAWING:
        return ()
