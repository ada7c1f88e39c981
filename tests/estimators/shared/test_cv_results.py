import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from kernelweave.estimators.shared.cv_results import tabulate_scores


def test_it_is_the_table_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    expected = GridSearchCV(SVC(), {"C": [0.01, 1.0, 100.0]}, cv=3).fit(X, y).cv_results_
    scores = np.column_stack([expected[f"split{k}_test_score"] for k in range(3)])
    table = tabulate_scores(expected["params"], scores)
    assert set(expected) - set(table) == {"mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"}
    assert table["params"] == expected["params"]
    for name in set(table) - {"params"}:
        np.testing.assert_allclose(table[name], np.asarray(expected[name], dtype=float), rtol=1e-12)


def test_folds_may_count_by_their_rows():
    table = tabulate_scores([{"C": 1.0}], np.array([[1.0, 0.0]]), np.array([3.0, 1.0]))
    assert table["mean_test_score"][0] == pytest.approx(0.75)
    assert table["std_test_score"][0] == pytest.approx(np.sqrt(0.75 * 0.25))


@pytest.mark.filterwarnings("error")
def test_losses_whose_squares_overflow_have_a_deviation():
    table = tabulate_scores([{"C": 1.0}, {"C": 2.0}], np.array([[-1e200, -3e200], [-1e-200, -3e-200]]))
    np.testing.assert_allclose(table["std_test_score"], [1e200, 1e-200], rtol=1e-12)


def test_values_that_are_arrays_stay_one_for_each_candidate():
    table = tabulate_scores([{"C": np.ones(2)}, {"C": np.zeros(2)}], np.array([[0.5], [0.5]]))
    assert table["param_C"].shape == (2,)
    assert table["rank_test_score"].tolist() == [1, 1]
    assert len(pd.DataFrame(table)) == 2
