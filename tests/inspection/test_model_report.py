"""A page about a fitted model: what it must hold, for every kind of model."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    AutoKernelClassifier,
    AutoKernelRegressor,
    HarmonicClassifier,
    Linear,
    MKLClassifier,
    RKDAClassifier,
    write_report,
)

CLASSES = np.array(["<script>alert(1)</script>", "b & c", "d_$x$"], dtype=object)


def rows():
    X, codes = load_iris(return_X_y=True)
    y = CLASSES[codes]
    y[np.arange(150) % 4 != 0] = None
    return X, y


@pytest.fixture(scope="module")
def auto():
    X, y = rows()
    return AutoKernelClassifier(["SVM", "harmonic", "RKDA"], random_state=0).fit(X, y)


def titles(page):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page)


def test_the_page_of_a_combination_has_all_sections(auto, tmp_path):
    X, y = rows()
    write_report(auto, X, y, tmp_path / "page.html", title="Iris <i>")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert titles(page) == [
        "What was learned", "Candidates", "Errors", "Are the probabilities right?", "Kernels and sources",
        "Map of the rows", "Convergence and certificates", "Doubtful labels", "Rows to label next", "How to repeat it",
    ]  # fmt: skip
    assert "<h1>Iris &lt;i&gt;</h1>" in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<svg") == 5
    assert f"{100 * auto.error_.value:.1f} %" in page
    assert "38 labelled and 112 unlabelled rows" in page


def test_a_single_model_is_cross_validated(tmp_path):
    X, y = rows()
    model = MKLClassifier([Linear(), RBF()]).fit(X, y)
    write_report(model, X, y, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert {"What was learned", "Errors", "Kernels and sources", "Convergence and certificates"} <= set(titles(page))
    assert "Candidates" not in titles(page)
    assert "38 held-out rows" in page


def test_a_pipeline_is_reported_by_its_last_step(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), RKDAClassifier([Linear()])).fit(X, y)
    write_report(model, X, y, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What RKDAClassifier learned" in page
    assert "labels filled in" not in page  # every row has its label


def test_numbers_have_a_page_too(tmp_path):
    X, _ = rows()
    y = np.where(np.arange(150) % 3 == 0, X[:, 0] ** 2, np.nan)
    model = AutoKernelRegressor(["SVM", "ridge regression"], random_state=0).fit(X, y)
    write_report(model, X, y, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "root mean squared error" in page
    assert "Rows to label next" not in titles(page)


def test_a_model_without_folds_says_that_its_error_is_not_known(tmp_path):
    X, y = rows()
    first = [np.flatnonzero(y == each)[0] for each in CLASSES]
    few = np.full(150, None, dtype=object)
    few[first] = y[first]
    write_report(HarmonicClassifier().fit(X, few), X, few, tmp_path / "page.html")
    assert "nothing is known about the error" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_refused_before_the_work(auto, tmp_path):
    X, y = rows()
    with pytest.raises(Exception, match="no folder"):
        write_report(auto, X, y, tmp_path / "missing" / "page.html")
