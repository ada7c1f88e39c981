import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.estimators.shared.target import read_labels, read_target
from kernelweave.labels import Partition, TargetPartition, partition, partition_targets


def target_from(labels, weight=None):
    return read_target(read_as_given(Rows(np.zeros((labels.n_labeled + labels.n_unlabeled, 1))), labels, weight))


def test_the_target_of_classes_are_indicators():
    target = target_from(partition(["b", None, "a", "b"]), np.array([1.0, 5.0, 2.0, 3.0]))
    assert target.rows.tolist() == [0, 2, 3]
    assert target.values.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert target.weight.tolist() == [1, 2, 3]
    assert target.names == ("a", "b")
    assert target.fewest == 1
    assert target.restrict(np.array([0, 2])).values.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_target_of_numbers_is_in_units_of_their_deviation(scale):
    rng = np.random.default_rng(0)
    y, weight = scale * rng.normal(size=(30, 2)), rng.uniform(0.5, 2.0, size=30)
    target = target_from(partition_targets(y, several=True), weight)
    np.testing.assert_allclose(np.average(target.values, axis=0, weights=weight), 0.0, atol=1e-14)
    np.testing.assert_allclose(np.average(target.values**2, axis=0, weights=weight), 1.0)
    np.testing.assert_allclose(target.values * target.deviation + np.average(y, axis=0, weights=weight), y)
    assert target.fewest == 30


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9 / 3])
@pytest.mark.parametrize("n_rows", [1, 3, 10])
def test_a_constant_target_is_refused_whatever_its_rounding(constant, n_rows):
    with pytest.raises(ValueError, match=rf"All labelled rows have the same target.*n_samples={n_rows}"):
        target_from(partition_targets(np.full(n_rows, constant)))
    y = np.column_stack([np.full(10, constant), np.arange(10.0)])
    target = target_from(partition_targets(y, several=True))
    assert not target.values[:, 0].any()
    assert target.deviation[0] == 1.0


@pytest.mark.parametrize(
    "y, target, kind",
    [
        ([0, 1, -1], "auto", Partition),
        ([0.5, 1.25, np.nan], "auto", TargetPartition),
        ([[0, 1], [1, 0]], "auto", TargetPartition),
        ([0.0, 1.0, np.nan], "auto", Partition),
        ([0, 1, 2], "numbers", TargetPartition),
        ([0, 1, np.nan], "classes", Partition),
        (["a", "b", None], "auto", Partition),
    ],
    ids=str,
)
def test_y_is_read_as_classes_or_numbers(y, target, kind):
    assert type(read_labels(y, target, "auto")) is kind


@pytest.mark.parametrize("target", ["auto", "classes", "numbers"])
def test_a_column_is_said_to_be_one_once(target):
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        read_labels(np.array([[0], [1], [2]]), target, "auto")
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("target", ["auto", "classes", "numbers"])
def test_y_must_be_given(target):
    with pytest.raises(ValueError, match="requires y to be passed"):
        read_labels(None, target, "auto")
