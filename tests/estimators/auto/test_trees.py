"""Trees as arrays predict what scikit-learn's forests and boosted trees predict."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError

from kernelweave import load, save
from kernelweave.estimators.auto import trees
from kernelweave.estimators.auto.trees import (
    BOOSTING,
    MIN_PROBABILITY,
    TreesClassifier,
    TreesRegressor,
    arrange_columns,
)
from kernelweave.estimators.shared.fold_choice import number_by_appearance

N_TREES = 8
SAME = 1e-12  # sums of the same leaves in another order


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(trees, "N_FOREST", N_TREES)
    monkeypatch.setitem(BOOSTING, "n_estimators", N_TREES)


def sample(n_classes=2, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.3] = 0.0
    value = X[:, 0] + X[:, 1] ** 2
    return X, value, np.digitize(value, np.quantile(value, np.linspace(0, 1, n_classes + 1)[1:-1]))


def expected_probabilities(boosted, X, y, weight, new, **options):
    """Those of scikit-learn, whose trees draw columns by place, and whose boosting goes through classes by number."""
    model = RandomForestClassifier(N_TREES, random_state=0, **options)
    if boosted:
        model = GradientBoostingClassifier(**BOOSTING, random_state=0)
    order, own = arrange_columns(X), number_by_appearance(y)
    found = model.fit(X[:, order], own, weight).predict_proba(new[:, order])
    return found[:, [own[list(y).index(k)] for k in np.unique(y)]]


def soften(probabilities):
    """What the forest does with classes that no tree has seen in a leaf."""
    softened = probabilities + MIN_PROBABILITY
    return softened / softened.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("boosted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_scikit_learn(n_classes, boosted, weighted):
    X, _, y = sample(n_classes)
    weight = np.linspace(0.1, 3.0, len(y)) if weighted else None
    found = TreesClassifier(boosted=boosted, random_state=0).fit(X, y, weight)
    new = np.random.default_rng(1).normal(size=(40, 4))
    probabilities = expected_probabilities(boosted, X, y, weight, new)
    np.testing.assert_allclose(
        found.predict_proba(new), probabilities if boosted else soften(probabilities), rtol=SAME, atol=SAME
    )
    np.testing.assert_array_equal(found.predict(new), probabilities.argmax(axis=1))
    np.testing.assert_array_equal(found.classes_, np.unique(y))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("boosted", [False, True])
def test_numbers_are_those_of_scikit_learn(boosted, weighted):
    X, y, _ = sample()
    weight = np.linspace(0.1, 3.0, len(y)) if weighted else None
    found = TreesRegressor(boosted=boosted, random_state=0).fit(X, y, weight)
    if boosted:
        expected = GradientBoostingRegressor(**BOOSTING, random_state=0)
    else:
        expected = RandomForestRegressor(N_TREES, min_samples_leaf=2, random_state=0)
    new = np.random.default_rng(1).normal(size=(40, 4))
    order = arrange_columns(X)
    numbers = expected.fit(X[:, order], y, weight).predict(new[:, order])
    np.testing.assert_allclose(found.predict(new), numbers, rtol=SAME, atol=SAME)


@pytest.mark.parametrize("boosted", [False, True])
def test_sparse_rows_grow_and_meet_the_trees_of_scikit_learn(boosted):
    X, _, y = sample(3)
    thin = sparse.csr_array(X)
    found = TreesClassifier(boosted=boosted, random_state=0).fit(thin, y)
    probabilities = expected_probabilities(boosted, thin, y, None, thin)
    expected = probabilities if boosted else soften(probabilities)
    np.testing.assert_allclose(found.predict_proba(thin), expected, rtol=SAME, atol=SAME)
    np.testing.assert_allclose(found.predict_proba(X), expected, rtol=SAME, atol=SAME)


def test_class_weights_are_those_of_the_forest():
    X, _, y = sample()
    found = TreesClassifier(class_weight={0: 1.0, 1: 9.0}, random_state=0).fit(X, y)
    by_appearance = dict(zip(number_by_appearance(y), np.where(y == 1, 9.0, 1.0), strict=True))
    expected = expected_probabilities(False, X, y, None, X, class_weight=by_appearance)
    np.testing.assert_allclose(found.predict_proba(X), soften(expected), rtol=SAME, atol=SAME)


@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 9.0}, "balanced"])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weights_are_those_of_the_rows_of_boosted_trees(class_weight, weighted):
    X, value, _ = sample()
    y = (value > np.quantile(value, 0.8)).astype(int)
    weight = np.linspace(0.1, 3.0, len(y)) if weighted else np.ones(len(y))
    factors = np.where(y == 1, 9.0, 1.0) if class_weight != "balanced" else len(y) / (2 * np.bincount(y)[y])
    found = TreesClassifier(boosted=True, class_weight=class_weight, random_state=0)
    found.fit(X, y, weight if weighted else None)
    expected = expected_probabilities(True, X, y, weight * factors, X)
    np.testing.assert_allclose(found.predict_proba(X), expected, rtol=SAME, atol=SAME)


def test_classes_may_be_strings():
    X, _, y = sample()
    names = np.array(["no", "yes"])[y]
    for boosted in (False, True):
        model = TreesClassifier(boosted=boosted, random_state=0).fit(X, names)
        assert set(model.predict(X)) <= {"no", "yes"}
        assert model.score(X, names) > 0.8


@pytest.mark.parametrize("model", [TreesClassifier(), TreesClassifier(boosted=True), TreesRegressor()], ids=repr)
def test_no_compiled_tree_is_kept_and_a_file_gives_the_same_model(model, tmp_path):
    pytest.importorskip("skops")
    X, value, y = sample()
    fitted = clone(model).set_params(random_state=0).fit(X, y if hasattr(model, "predict_proba") else value)
    assert b"sklearn.tree" not in pickle.dumps(fitted)
    save(fitted, tmp_path / "m.skops")
    np.testing.assert_array_equal(load(tmp_path / "m.skops").predict(X), fitted.predict(X))


def test_trees_that_were_not_grown_and_rows_of_other_columns_are_refused():
    X, value, _ = sample()
    with pytest.raises(NotFittedError):
        TreesRegressor().predict(X)
    with pytest.raises(ValueError, match="X has 2 features, but TreesRegressor is expecting 4"):
        TreesRegressor().fit(X, value).predict(X[:, :2])
