"""Everything that a fitted model can tell, on one page."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..files import atomic_write, check_output
from ..report.content import Document, Section
from .fit_evidence import FitEvidence, read_evidence
from .report_sections import SECTIONS, list_cautions, list_facts

PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn", "highspy")


def write_report(
    model: Any, X: Any, y: Any, path: str | PathLike[str], *, title: str | None = None, random_state: Any = 0
) -> None:
    """Write a page about a fitted model: one HTML file that needs nothing else.

    What was learned, candidates, errors with intervals, calibration, kernels and sources, a map of the rows,
    convergence and certificates, doubtful labels, rows to label next, and how to repeat it.

    Parameters
    ----------
    model : fitted classifier or regressor of this package, or a pipeline that ends with one
        An AutoKernel* model keeps what it says of held-out rows; of others a copy is fitted in five folds.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The rows of the fit.
    y : array-like of shape (n_samples,)
        The labels of the fit.
    path : str or path
        The file; it is written whole or not at all.
    title : str, optional
        The heading; by default it names the model.
    random_state : int, RandomState or None, default=0
        Seed of the folds.

    See Also
    --------
    explain : Takes single predictions apart.
    column_importance : How much a model needs each column.
    compare_learners : Compares learners on the labelled rows.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import RKDAClassifier, write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(RKDAClassifier().fit(X, y), X, y, os.path.join(folder, "iris.html"))
    ...     os.listdir(folder)
    ['iris.html']
    """
    check_output(path)
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        X, model = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
    fit = read_evidence(model, X, y, random_state)
    lead = f"{fit.n_labeled:,} labelled and {fit.n_unlabeled:,} unlabelled rows, {_count_columns(X)} columns."
    page = make_page(fit, title or f"What {type(model).__name__} learned", lead, code=f"{model!r}.fit(X, y)")
    atomic_write(path, page.encode("utf-8", "backslashreplace"))


def make_page(
    fit: FitEvidence,
    title: str,
    lead: str,
    *,
    cautions: Sequence[str] = (),
    sections: Sequence[Section] = (),
    code: str = "",
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    fit : FitEvidence
    title, lead : str
    cautions : sequence of str
        Sentences that stand before all else.
    sections : sequence of Section
        Further ones; they come before the last.
    code : str
        How to repeat it.
    """
    own = [section for make in SECTIONS for section in make(fit)]
    last = [Section("How to repeat it", code=code)] if code else []
    return render_page(
        title=title,
        lead=lead,
        facts=tuple(list_facts(fit)),
        cautions=(*cautions, *list_cautions(fit)),
        sections=(*own, *sections, *last),
    )


def render_page(**parts: Any) -> str:
    """Return a page of these parts of a :class:`Document`, with the day and the versions at its foot."""
    try:
        from ..report.document import render_document
    except ImportError as missing:
        raise ImportError(f"A report needs {missing.name}: pip install 'kernelweave[report]'") from missing
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    footer = f"Made on {datetime.now(UTC).date()} with Python {platform.python_version()}, {versions}."
    return render_document(Document(**parts, footer=footer))


def _count_columns(X: Any) -> int:
    return int(X.shape[1]) if hasattr(X, "shape") else len(X[0])
