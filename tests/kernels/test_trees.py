import numpy as np
import pytest
from checks.rounding import assert_same_but_for_rounding
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

from kernelweave.kernels import trees
from kernelweave.kernels.trees import Forest


def sample():
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 4)).astype(np.float32).astype(float), rng.integers(0, 3, size=80)


def test_trees_of_scikit_learn_give_the_same_leaves_as_arrays():
    X, y = sample()
    grown = [DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y) for depth in (1, 3, None)]
    forest, values = Forest.from_trees([tree.tree_ for tree in grown], [tree.tree_.value[:, 0] for tree in grown])
    leaves = forest.leaves(X)
    for k, tree in enumerate(grown):
        np.testing.assert_array_equal(values[leaves[:, k]], tree.tree_.value[tree.apply(X), 0])


def test_values_of_leaves_add_up_to_the_prediction_of_a_forest(monkeypatch):
    monkeypatch.setattr(trees, "STRIP_ROWS", 7)
    X, y = sample()
    grown = RandomForestRegressor(20, random_state=0).fit(X, y)
    forest, values = Forest.from_trees(
        [tree.tree_ for tree in grown.estimators_], [tree.tree_.value[:, 0] / 20 for tree in grown.estimators_]
    )
    out = np.zeros((len(X), 1))
    forest.add_leaves(values, forest.leaves(X), out)
    assert_same_but_for_rounding(out[:, 0], grown.predict(X))


def test_rows_with_too_few_columns_are_refused():
    X, y = sample()
    forest, _ = Forest.from_trees([(tree := DecisionTreeClassifier().fit(X, y)).tree_], [tree.tree_.value[:, 0]])
    with pytest.raises(ValueError, match=r"The trees ask for column \d of rows with 1 columns"):
        forest.leaves(X[:, :1])
