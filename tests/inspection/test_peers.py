import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import GridSearchCV

from kernelweave.estimators.auto.candidates import list_candidates
from kernelweave.inspection.peers import Spreading, list_learners

X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 10.0, 100.0]


def names(learners):
    return [each if isinstance(each, str) else each[0] for each in learners]


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_all_learners_of_kernelweave_are_among_them(task):
    own = [each.name for each in list_candidates(X, 20, task) if each.is_certified]
    assert names(list_learners(X, 20, task))[: len(own)] == own


@pytest.mark.parametrize(
    "task, peers",
    [
        (
            "classes",
            ["logistic regression", "SVC", "LabelSpreading", "self-training", "random forest", "HistGradientBoosting"],
        ),
        ("numbers", ["ridge regression", "SVR", "random forest", "HistGradientBoosting"]),
    ],
)
def test_those_of_scikit_learn_that_users_know_are_among_them(task, peers):
    found = names(list_learners(X, 20, task))
    assert found[-len(peers) :] == peers
    assert len(set(found)) == len(found)


def test_sparse_rows_have_the_learners_that_take_them():
    found = names(list_learners(csr_array(X), 20, "classes"))
    assert "SVC" in found
    assert not {"LabelSpreading", "HistGradientBoosting"} & set(found)


@pytest.mark.parametrize("name", ["SVC", "LabelSpreading"])
def test_machines_and_graphs_choose_their_settings_by_folds_of_labelled_rows(name):
    codes = (X[:, 0] > 0).astype(int)  # the column of the smallest numbers, which only standardised rows show
    y = np.where(np.arange(40) < 30, codes, -1) if name == "LabelSpreading" else codes
    search = dict(each for each in list_learners(X, 30, "classes") if not isinstance(each, str))[name]
    assert isinstance(search, GridSearchCV)
    search.fit(X, y)
    assert search.best_params_["scale"] is not None
    assert search.best_score_ > 0.7


def test_label_spreading_says_nothing_of_rows_that_no_label_reaches():
    rows = np.repeat([[0.0], [50.0], [100.0]], 4, axis=0) + np.linspace(0, 1, 12)[:, None]
    y = np.where(np.arange(12) < 8, np.repeat([0, 1, 0], 4), -1)  # the third cluster has no label
    model = Spreading(kernel="knn", n_neighbors=3).fit(rows, y)
    np.testing.assert_allclose(model.predict_proba(rows)[[0, 4, 8]], [[1, 0], [0, 1], [0.5, 0.5]], atol=0.05)


def test_with_few_labels_nothing_is_searched_and_boosted_trees_can_grow():
    found = dict(each for each in list_learners(X, 6, "numbers") if not isinstance(each, str))
    assert not isinstance(found["SVR"], GridSearchCV)
    assert found["HistGradientBoosting"].min_samples_leaf == 1
