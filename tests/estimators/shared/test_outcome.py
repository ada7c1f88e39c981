import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave.estimators.shared.outcome import summarize, warn_unless_converged, worst
from kernelweave.solvers.result import Certificate, SolverResult, Status


def result(objective, gap, status=Status.CONVERGED, kind="duality gap", n_iter=3):
    certificate = Certificate(gap, objective, kind, scope="4 kernels")
    history = tuple({"iteration": i} for i in range(n_iter))
    return SolverResult(np.zeros(1), objective, certificate, status, n_iter=n_iter, history=history)


def test_one_problem_keeps_its_number_and_several_keep_one_each():
    one = summarize([result(2.0, 0.1)])
    assert (one.objective, one.certificate.gap, one.status) == (2.0, 0.1, Status.CONVERGED)
    three = summarize([result(2.0, 0.1), result(4.0, 0.2, n_iter=7), result(6.0, 0.3)], [{"class": k} for k in "abc"])
    np.testing.assert_array_equal(three.objective, [2.0, 4.0, 6.0])
    assert three.certificate.gap == pytest.approx(0.6)
    assert three.certificate.objective == pytest.approx(12.0)
    assert three.certificate.scope == "4 kernels"
    assert three.n_iter == 7
    assert [record["class"] for record in three.history] == ["a"] * 3 + ["b"] * 7 + ["c"] * 3


def test_a_problem_that_did_not_converge_is_worse_than_any_that_did():
    results = [result(1.0, 0.5), result(1.0, 0.1, Status.MAX_ITER), result(1.0, 0.2, Status.MAX_ITER)]
    assert worst(results) is results[2]
    assert summarize(results).status is Status.MAX_ITER


def test_the_warning_has_the_number_what_was_asked_for_and_a_remedy():
    remedies = {Status.MAX_ITER: "Raise max_iter"}
    with pytest.warns(
        ConvergenceWarning, match=r"Certified relative gap: 2.00e-01, tolerance: 1.00e-03. Raise max"
    ) as w:
        warn_unless_converged([result(1.0, 0.2, Status.MAX_ITER)], 1e-3, remedies)
    assert w[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="Relative distance from stationarity"):
        warn_unless_converged([result(1.0, 0.2, Status.MAX_ITER, kind="stationarity")], 1e-3, remedies)


def test_there_is_no_warning_where_there_is_no_remedy(recwarn):
    warn_unless_converged([result(1.0, 0.2, Status.CALLBACK), result(1.0, 0.0)], 1e-3, {Status.MAX_ITER: "Raise it"})
    assert not recwarn


@pytest.mark.parametrize(
    ("gap", "kind", "words"),
    [
        (0.05, "duality gap", r"gap: 5\.00e-02, .* Raise max_time, raise tol, or accept the certified gap\.$"),
        (0.2, "duality gap", r"gap: 2\.00e-01, tolerance: 1\.00e-03\. Raise max_time\.$"),
        (3e307, "duality gap", r"No useful bound on the gap is known yet, tolerance: 1\.00e-03\. Raise max_time\.$"),
        (np.inf, "duality gap", r"No useful bound on the gap is known yet, tolerance: 1\.00e-03\. Raise max_time\.$"),
        (0.05, "stationarity", r"stationarity: 5\.00e-02, tolerance: 1\.00e-03\. Raise max_time or tol\.$"),
    ],
)
def test_only_a_small_gap_is_one_to_accept_and_a_huge_one_is_no_bound(gap, kind, words):
    with pytest.warns(ConvergenceWarning, match=words):
        warn_unless_converged([result(1.0, gap, Status.MAX_TIME, kind=kind)], 1e-3, {Status.MAX_TIME: "Raise max_time"})
