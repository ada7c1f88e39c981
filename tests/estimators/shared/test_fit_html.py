"""The HTML of a fitted estimator: scikit-learn's own, and below it what was learned."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from sklearn.utils import estimator_html_repr

from kernelweave import (
    RBF,
    AutoKernelClassifier,
    HarmonicClassifier,
    LearnedKernelClassifier,
    Linear,
    MKLClassifier,
    SSMKClassifier,
    one_kernel_per_group,
)
from kernelweave.estimators.shared.fit_html import describe_fit
from kernelweave.estimators.shared.records import Records
from kernelweave.solvers.result import Certificate, Status

HOSTILE = "<script>alert('x')</script>"


class Tables(HTMLParser):
    """Reads the cells of tables, and which elements are never closed."""

    def __init__(self):
        super().__init__()
        self.rows, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


def read(html):
    parser = Tables()
    parser.feed(html)
    assert parser.open == []
    return parser.rows


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(40, 4))
    y = np.where(X[:, 0] > 0, HOSTILE, "b")
    library = one_kernel_per_group({HOSTILE: [0, 1], "clinic');alert(1);//": [2, 3]}, [RBF(), Linear()])
    auto = AutoKernelClassifier(["MKL", "logistic regression"], random_state=0)
    models = (MKLClassifier(library), SSMKClassifier(), LearnedKernelClassifier(), HarmonicClassifier(), auto)
    return {type(model).__name__: model.fit(X, y) for model in models}


def addition(model):
    """What comes after scikit-learn's part, of which ids differ from call to call."""
    html = model._repr_html_()
    return html[html.index('<div class="kernelweave-fit">') :]


def test_a_model_that_is_not_fitted_looks_as_in_scikit_learn():
    for model in (SSMKClassifier(), MKLClassifier([RBF(), Linear()]), AutoKernelClassifier()):
        number = re.compile(r"sk-[\w-]*?\d+")
        assert number.sub("", model._repr_html_()) == number.sub("", estimator_html_repr(model))


def test_a_fitted_model_adds_kernels_certificate_and_status(fitted):
    model = fitted["MKLClassifier"]
    text = addition(model)
    assert "The certificate is within the tolerance." in text
    assert "duality gap" in text
    rows = read(text)
    heaviest = max(model.kernel_weights_, key=lambda record: record["weight"])
    assert rows[0] == ["name", "source", "weight"]
    assert rows[1] == [heaviest["name"], heaviest["source"], f"{heaviest['weight']:.4g}"]
    assert ["source", "weight"] in rows


def test_mixtures_learned_kernels_and_combinations_have_their_tables(fitted):
    assert read(addition(fitted["SSMKClassifier"]))[0] == ["name", "source", "columns", "share"]
    assert read(addition(fitted["LearnedKernelClassifier"]))[0] == ["name", "weight"]
    assert read(addition(fitted["HarmonicClassifier"])) == []
    auto = fitted["AutoKernelClassifier"]
    assert {row[0] for row in read(addition(auto))[1:]} == {member.name for member in auto.members_}
    assert "held-out rows" in addition(auto)


def test_everything_foreign_is_escaped_and_no_address_is_invented(fitted):
    for model in fitted.values():
        html = model._repr_html_()
        assert "<script>alert" not in html
        assert "');alert(1)" not in html
        assert not re.search(r'onclick="[^"]*alert', html)  # where escaping alone would not help
        assert not re.search(r"(href|src)=.?http", html)
        assert "http" not in addition(model)


def test_the_mime_bundle_has_the_same_addition(fitted):
    for model in fitted.values():
        assert model._repr_mimebundle_()["text/html"].endswith(addition(model))


def test_display_text_shows_no_html(fitted):
    with sklearn.config_context(display="text"):
        model = fitted["MKLClassifier"]
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_of_many_kernels_the_largest_are_shown_and_the_others_counted():
    usage = Records({"name": f"k{k}", "share": k / 300.0} for k in range(25))
    text = describe_fit({"kernel_usage_": usage, "certificate_": Certificate(0.1, 2.0)}, Status.MAX_TIME)
    assert [row[0] for row in read(text)[1:]] == [f"k{k}" for k in range(24, 14, -1)]
    assert "14 more and 1 others without share" in text
    assert Status.MAX_TIME.value in text
