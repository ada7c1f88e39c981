import numpy as np
import pytest

from kernelweave import (
    RBF,
    LapSVMClassifier,
    LearnedKernelClassifier,
    MKLClassifier,
    MKLRegressor,
    RKDAClassifier,
)
from kernelweave.estimators.shared.problems import (
    EPSILON_SHARE,
    NumberProblem,
    class_problem,
    naming_large_numbers,
    number_problem,
)
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition, partition_targets
from kernelweave.solvers.result import NotFiniteError

X = np.arange(8.0)[:, None]
SQUARED = "squared_epsilon_insensitive"


def test_margins_are_those_of_the_rows_that_are_kept_and_losses_those_of_the_others():
    y = np.array([0, 1, 2, 0, 1, 2, None, None], dtype=object)
    sample = read_as_given(Rows(X), partition(y), np.arange(1.0, 9.0))
    problem = class_problem(sample, {0: 2.0})
    kept, held = np.array([0, 1, 2]), np.array([3, 4, 5])
    margins = problem.margins(10.0, kept)
    assert len(margins) == 3
    np.testing.assert_allclose(margins[0].cost, [20.0, 20.0, 30.0])
    values = np.eye(3)
    values[2] = [0.0, 1.0, 0.0]
    assert problem.losses(values, held).tolist() == [0.0, 0.0, 1.0]


def test_costs_of_numbers_are_multiples_of_their_weighted_deviation():
    y = np.array([0.0, 10.0, 10.0, np.nan, np.nan, np.nan, np.nan, np.nan])
    weight = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    problem = number_problem(read_as_given(Rows(X), partition_targets(y), weight), 0.5)
    assert problem.cost_unit == pytest.approx(5.0)
    assert problem.losses(np.array([[5.0]]), np.array([0])).tolist() == [1.0]
    assert problem.constant(np.array([1, 2])) == 10.0


def test_equal_numbers_have_a_unit_too():
    sample = read_as_given(Rows(X), partition_targets(np.full(8, 3.0)))
    assert number_problem(sample, 0.1).cost_unit == 1.0


def test_errors_of_numbers_are_in_units_of_each_output():
    targets, unit = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]), np.array([1.0, 10.0])
    problem = NumberProblem(targets, np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25]), unit)
    first, second = problem.margins(np.array([1.0, 10.0]), np.array([0, 2]))
    assert first.cost.tolist() == [1.0, 3.0] * 2
    assert second.cost.tolist() == [10.0, 30.0] * 2
    assert first.target.tolist() == [0.5, 2.5, -1.5, -3.5]
    assert second.target.tolist() == [9.75, 29.75, -10.25, -30.25]
    assert problem.losses(targets[[1]] + [[2.0, 0.0]], np.array([1])).tolist() == [2.0]


def test_a_part_of_the_rows_keeps_every_output_and_the_units():
    labels = np.array(["b", "a", "c", "b", None, None, None, None], dtype=object)
    problem = class_problem(read_as_given(Rows(X), partition(labels)), None).restrict(np.array([0, 1, 3]))
    assert [signs.tolist() for signs in problem.signs] == [[-1, 1, -1], [1, -1, 1], [-1, -1, -1]]
    numbers = number_problem(read_as_given(Rows(X), partition_targets(np.arange(8.0))), "auto")
    part = numbers.restrict(np.array([0, 2]))
    assert part.targets.tolist() == [[0.0], [2.0]]
    assert (part.cost_unit, part.epsilon) == (numbers.cost_unit, numbers.epsilon)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_errors_that_cost_nothing_are_a_share_of_the_weighted_deviation(scale):
    rng = np.random.default_rng(0)
    y, weight = rng.normal(3.0, 2.0, size=8), rng.integers(1, 4, size=8)
    problem = number_problem(read_as_given(Rows(X), partition_targets(scale * y), weight), "auto")
    deviation = np.repeat(y, weight).std()
    np.testing.assert_allclose(problem.epsilon / scale, EPSILON_SHARE * deviation)
    assert problem.cost_unit / scale == pytest.approx(deviation)
    assert number_problem(read_as_given(Rows(X), partition_targets(y)), 0.25).epsilon.tolist() == [0.25]


def test_numbers_of_several_outputs_have_a_zone_each():
    y = np.column_stack([np.arange(8.0), np.full(8, 0.1)])
    problem = number_problem(read_as_given(Rows(X), partition_targets(y, several=True)), "auto")
    np.testing.assert_allclose(problem.epsilon, [EPSILON_SHARE * np.arange(8).std(), 0.0])
    np.testing.assert_allclose(problem.cost_unit, [np.arange(8).std(), 1.0])


def test_numbers_whose_squares_overflow_are_refused_where_errors_are_squared():
    for size in (1.0, 1e60):
        number_problem(read_as_given(Rows(X), partition_targets(size * np.arange(8.0))), 0.0).require_squares("Model")
    y = 1e100 * np.arange(8.0)
    for model in (MKLRegressor(loss=SQUARED), MKLRegressor(C=1.0, loss=SQUARED)):
        with pytest.raises(ValueError, match=r"MKLRegressor squares errors, .* differ by 3.5e.100, .*Divide y"):
            model.fit(X, y)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("size", [1e-60, 1e-30, 1e30, 1e60])
def test_squared_errors_of_numbers_of_any_size_have_a_finite_objective(size):
    y = size * np.arange(8.0)
    model = MKLRegressor([RBF(1.0)], loss=SQUARED, epsilon=0.0, C=1.0).fit(X, y)
    assert np.isfinite(model.objective_)
    assert model.certificate_.relative <= model.tol


ROWS = np.random.default_rng(0).normal(size=(60, 3))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("Model", "size"), [(MKLRegressor, 1e155), (MKLRegressor, 1e200)])
def test_numbers_that_are_too_large_are_named_with_a_remedy(Model, size):
    with pytest.raises(ValueError, match=r"y holds numbers up to [\d.]+e\+\d+ in size\. Divide y by a power of ten\.$"):
        Model().fit(ROWS, size * ROWS[:, 0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("Model", [MKLClassifier, LapSVMClassifier, RKDAClassifier, LearnedKernelClassifier])
def test_weights_that_are_too_large_are_named_with_a_remedy(Model):
    message = rf"{Model.__name__}: .* sample_weight goes up to 1e\+200\. Divide the weights by their mean\.$"
    with pytest.raises(ValueError, match=message):
        Model().fit(ROWS, ROWS[:, 0] > 0, sample_weight=np.full(60, 1e200))


@pytest.mark.parametrize(("in_y", "in_weight"), [(1e100, 1.0), (1e148, 1.0), (1.0, 1e148)])
def test_large_numbers_and_weights_that_can_be_computed_with_are_taken(in_y, in_weight):
    model = MKLRegressor(random_state=0).fit(ROWS, in_y * ROWS[:, 0], sample_weight=np.full(60, in_weight))
    assert np.corrcoef(model.predict(ROWS) / in_y, ROWS[:, 0])[0, 1] > 0.99


def test_other_reasons_for_infinite_values_are_left_as_they_are():
    sample = read_as_given(Rows(X), partition_targets(np.arange(8.0)))
    with pytest.raises(NotFiniteError, match="a singular kernel"), naming_large_numbers("Model", sample):
        raise NotFiniteError("a singular kernel")
