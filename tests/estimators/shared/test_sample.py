import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.utils.class_weight import compute_class_weight

from kernelweave.estimators.shared.sample import Rows, class_weights, join_unlabeled, read_as_given
from kernelweave.labels import partition, partition_targets

Y = np.array([0, 0, 0, 1, -1, 2, 2])


def test_rows_of_weight_zero_take_no_part_and_numbers_of_rows_are_those_given():
    rows = Rows(np.arange(14.0).reshape(7, 2))
    sample = read_as_given(rows, partition(Y), [1, 0, 2, 1, 1, 0, 1])
    np.testing.assert_array_equal(sample.kept, [0, 2, 3, 4, 6])
    np.testing.assert_array_equal(sample.X, rows.X[sample.kept])
    np.testing.assert_array_equal(sample.labeled_weight, [1, 2, 1, 1])
    np.testing.assert_array_equal(sample.partition.labels, [0, 0, 1, 2])
    assert (sample.n_rows, sample.n_given, sample.given.n_labeled) == (5, 7, 6)
    assert sample.share.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(sample.spread(np.ones((5, 1)))[:, 0], [1, 0, 1, 1, 1, 0, 1])
    assert sample.restrict(np.ones(5, dtype=bool)) is sample


def test_rows_and_labels_must_be_equally_many_and_some_must_weigh():
    with pytest.raises(ValueError, match="X has 3 rows but y has 2; they must have the same length"):
        read_as_given(Rows(np.eye(3)), partition_targets([1.0, 2.0]))
    with pytest.raises(ValueError, match="zero"):
        read_as_given(Rows(np.eye(2)), partition_targets([1.0, 2.0]), [0.0, 0.0])


@pytest.mark.parametrize("kinds", [(np.asarray, csr_array), (csr_array, np.asarray), (csr_matrix, csr_matrix)])
def test_sparse_rows_may_follow_dense_ones(kinds):
    X = np.random.default_rng(0).normal(size=(10, 2))
    rows, others = (Rows(kind(part)) for kind, part in zip(kinds, (X[:7], X[7:]), strict=True))
    found = join_unlabeled(rows, partition(Y), None, others)
    expected = join_unlabeled(Rows(X[:7]), partition(Y), None, Rows(X[7:]))
    assert issparse(found.X)
    np.testing.assert_array_equal(found.rows.X.toarray(), X)
    assert found.partition.n_unlabeled == expected.partition.n_unlabeled == 4


def test_balanced_class_weights_make_classes_weigh_the_same():
    found = partition(Y)
    weight = np.array([1.0, 2.0, 1.0, 1.0, 3.0, 1.0])
    factors = class_weights("balanced", found, weight)
    totals = np.bincount(found.codes, weights=weight * factors)
    np.testing.assert_allclose(totals, weight.sum() / 3)


def test_class_weights_given_by_class_go_to_the_rows():
    np.testing.assert_array_equal(class_weights({0: 2.0, 2: 5.0}, partition(Y), np.ones(6)), [2, 2, 2, 1, 5, 5])
    np.testing.assert_array_equal(class_weights({"a": 3}, partition(["a", "b", None]), np.ones(2)), [3, 1])


@pytest.mark.parametrize("y", [np.array([0, 1, 1]), np.array([0.0, 1.0, 1.0])], ids=["int", "float"])
@pytest.mark.parametrize("given", [{0: 2, 1: 3, 7: 4}, {0: 2}, {0: 2, 7: 4}, {7: 4}, {}], ids=str)
def test_weights_of_classes_that_y_lacks_are_taken_and_refused_as_scikit_learn_does(given, y):
    try:
        expected = compute_class_weight(given, classes=np.unique(y), y=y)
    except ValueError:
        with pytest.raises(ValueError, match=r"class_weight names the class 7; y has .*, of which .* have no weight"):
            class_weights(given, partition(y), np.ones(3))
    else:
        np.testing.assert_array_equal(class_weights(given, partition(y), np.ones(3)), expected[y.astype(int)])


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, "x"])
def test_a_class_weight_must_be_positive(value):
    with pytest.raises(ValueError, match=r"gives 7 the weight .* expected a positive number"):
        class_weights({0: 1, 1: 1, 2: 1, 7: value}, partition(Y), np.ones(6))
    with pytest.raises(ValueError, match="expected a positive number"):
        class_weights({0: value}, partition(Y), np.ones(6))
