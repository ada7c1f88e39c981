import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import HarmonicRegressor, Linear
from kernelweave.estimators.shared.harmonic import SpreadingOptions, distributions, join_rows, spread_values
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition
from kernelweave.solvers import harmonic as solver
from kernelweave.solvers.deadline import NO_DEADLINE, Deadline, OutOfTimeError
from kernelweave.solvers.result import Status


def spread(deadline=NO_DEADLINE, **options):
    """A step function on a line, of which the ends are known."""
    X = np.linspace(0.0, 1.0, 60)[:, None]
    y = np.full(60, None, dtype=object)
    y[:5], y[-5:] = "a", "b"
    sample = read_as_given(Rows(X), partition(y))
    graph = join_rows(
        "Test", sample, np.random.default_rng(0), kernel=None, n_neighbors=2, metric="euclidean", edge_weights="binary"
    )
    given = {"owner": "Test", "tol": 1e-6, "max_iter": 1000, "verbose": 0, "deadline": deadline, **options}
    return spread_values(graph, sample.partition.labeled, sample.partition.indicator(), SpreadingOptions(**given))


def test_values_go_over_from_one_end_to_the_other():
    fit = spread()
    assert fit.status is Status.CONVERGED
    assert np.all(np.diff(fit.harmonic[:, 1]) >= -1e-9)
    np.testing.assert_allclose(fit.harmonic.sum(axis=1), 1.0)


@pytest.mark.filterwarnings("error")
def test_an_energy_beyond_double_precision_is_one_sentence():
    X, y = 1e130 * np.arange(1.0, 9.0)[:, None], np.array([1e40, 0.0, *[np.nan] * 6])
    with pytest.raises(ValueError, match=r"HarmonicRegressor: the energy, .* 1e\+40, is too large .* Divide y"):
        HarmonicRegressor(kernel=Linear()).fit(X, y)


def test_a_graph_for_which_there_was_no_time_is_an_error():
    with pytest.raises(OutOfTimeError, match="before the graph of the rows was made"):
        spread(Deadline(1e-9))


def test_steps_stop_when_the_time_is_over(monkeypatch):
    monkeypatch.setattr(solver, "MAX_DENSE_ROWS", 10)
    monkeypatch.setattr(solver, "MAX_ISLAND_ROWS", 0)
    monkeypatch.setattr(Deadline, "is_over", property(lambda self: self.seconds is not None))
    monkeypatch.setattr(Deadline, "check", lambda self, what: None)
    with pytest.warns(ConvergenceWarning, match="Stopped at max_time .* Raise max_time or tol"):
        fit = spread(Deadline(1.0), tol=1e-12)
    assert fit.status is Status.MAX_TIME
    assert fit.n_iter == solver.STEPS_PER_CHECK
    assert np.isfinite(fit.harmonic).all()


def test_a_line_says_how_values_were_found(capsys):
    spread(verbose=1)
    assert capsys.readouterr().err.startswith("Test: 0 steps of conjugate gradients, largest error ")


def test_distributions_are_weighted_and_sum_to_one():
    np.testing.assert_allclose(
        distributions(np.array([[0.5, 0.5], [1.0, -0.1]]), np.array([1.0, 3.0])), [[0.25, 0.75], [1, 0]]
    )
