import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from checks.partial_tables import fill, numeric, silent, table

from kernelweave import AutoKernelClassifier, AutoKernelRegressor, SSMKClassifier
from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.estimators.auto.candidates import list_candidates
from kernelweave.labeling.learner import (
    FAST_CLASSIFIERS,
    STOPPED_EARLY,
    Clock,
    Setup,
    describe_certificate,
    find_learners,
    fit_learner,
    list_kernels,
    note_limits,
)
from kernelweave.solvers.result import Certificate, Status

X = np.random.default_rng(0).normal(size=(60, 2))


def setup(learner="SVM", limit=None, on_stage=silent):
    return Setup(X, None, None, learner, 0, Clock(limit), on_stage)


def classes(n_labeled=30):
    y = np.where(X[:, 0] > 0, "p", "q").astype(object)
    y[n_labeled:] = None
    return y


@pytest.mark.parametrize("task, kind", [("classification", "classes"), ("regression", "numbers")])
def test_every_candidate_has_a_name_in_any_case(task, kind):
    names = [each.name for each in list_candidates(X, 30, kind)]
    for name in names:
        assert find_learners(name.upper(), task, X, 30) == [name]
    assert set(find_learners("Auto", task, X, 30)) <= set(names)
    assert set(FAST_CLASSIFIERS) <= {each.name for each in list_candidates(X, 30, "classes")}


def test_a_learner_of_the_other_task_is_refused_with_a_list_of_those_there_are():
    with pytest.raises(KernelweaveError, match=r"'LapSVM' is not a learner for regression; .*'auto', 'MKL'") as caught:
        find_learners("LapSVM", "regression", X, 30)
    assert caught.value.code is ErrorCode.BAD_OPTION


def test_one_learner_is_calibrated_and_tested_as_several_are():
    learner = fit_learner("classification", classes(), setup("harmonic"))
    assert isinstance(learner, AutoKernelClassifier)
    assert [member.name for member in learner.members_] == ["harmonic"]
    assert learner.error_.n_rows == 30
    numbers = np.where(np.arange(60) < 30, X[:, 0], np.nan)
    assert isinstance(fit_learner("regression", numbers, setup("harmonic")), AutoKernelRegressor)


def test_ctrl_c_ends_the_command_even_when_some_learners_were_tried():
    def stop(text, share):
        if "cross-validating" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_learner("classification", classes(), setup("harmonic", on_stage=stop))


def test_a_search_without_a_result_is_one_sentence(monkeypatch):
    def fail(self, X, y, groups=None):
        raise ValueError("No candidate could be fitted. SVM: no luck.")

    monkeypatch.setattr(AutoKernelClassifier, "fit", fail)
    with pytest.raises(KernelweaveError, match=r"SVM: no luck\. Try another --learner") as caught:
        fit_learner("classification", classes(), setup())
    assert caught.value.code is ErrorCode.BAD_TARGET


def test_each_source_has_a_family_of_kernels():
    frame, cells, empty, _ = table()
    report = fill(frame, cells, empty, sources={"left": ["a", "kind"], "right": ["b"]}, learner="MKL").report
    assert {kernel["source"] for kernel in report["best_certified"]["kernels"]} == {"left", "right"}
    assert sum(kernel["share"] for kernel in report["best_certified"]["kernels"]) == pytest.approx(1.0)


def test_pixels_of_two_sources_have_plain_kernels():
    rng = np.random.default_rng(0)
    frame, cells, empty, _ = table()
    pixels = {f"p{k}": rng.integers(0, 255, 90).astype(str) for k in range(24)}
    frame = frame[["y"]].assign(**pixels)
    sources = {"top": [f"p{k}" for k in range(12)], "bottom": [f"p{k}" for k in range(12, 24)]}
    kernels = fill(frame, cells, empty, sources=sources, learner="MKL").report["best_certified"]["kernels"]
    assert {kernel["source"] for kernel in kernels} == {"top", "bottom"}
    assert not any("forest" in kernel["name"] for kernel in kernels)


def test_mixtures_tell_their_basis_functions_and_sums_their_weights():
    mixture = SSMKClassifier(C=1.0).fit(X, X[:, 0] > 0)
    assert [record["columns"] for record in list_kernels(mixture)].count(0) < len(mixture.kernel_usage_)
    assert list_kernels(SimpleNamespace()) == []
    weights = [{"name": "a", "source": "s", "weight": 1.0}, {"name": "b", "source": "s", "weight": 3.0}]
    found = list_kernels(SimpleNamespace(kernel_weights_=weights))
    assert [(record["name"], record["share"]) for record in found] == [("b", 0.75), ("a", 0.25)]


def test_the_best_certified_learner_goes_by_the_name_of_its_candidate():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}")
    assert fill(frame, cells, empty, learner="LearnedKernel").report["best_certified"]["candidate"] == "LearnedKernel"
    assert fill(frame, cells, empty, learner="ridge regression").report["best_certified"] is None


def test_the_command_speaks_of_its_own_options_and_gives_the_gap():
    frame, cells, empty, _ = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the note takes the place of the estimators' warning
        report = fill(frame, cells, empty, time_limit=1e-6, learner="SSMK").report
    certificate = report["members"][0]["certificate"]
    assert certificate["status"] == "Stopped at --time-limit before the certificate reached the tolerance."
    (note,) = (note for note in report["warnings"] if "Certified" in note)
    assert f"gap: {certificate['relative']:.1e}, tolerance: 1.0e-06. Raise --time-limit, or accept" in note
    assert "max_time" not in str(report)


@pytest.mark.parametrize("status", Status)
def test_a_fit_that_stopped_early_has_a_remedy_and_a_converged_one_needs_none(status):
    model = SimpleNamespace(status_=status, certificate_=Certificate(0.5, 2.0), tol=1e-6)
    learner = SimpleNamespace(
        members_=[SimpleNamespace(name="one", model=model)], leaderboard_=[], oof_rows_=np.arange(9), max_time=None
    )
    notes = note_limits(learner, 9)
    assert len(notes) == (status.name in STOPPED_EARLY)
    assert not (notes and status.converged)
    sentence = describe_certificate(model)["status"]
    assert sentence == (notes[0].removeprefix("one: ").partition(" Certified")[0] if notes else status.value)
    assert describe_certificate(SimpleNamespace()) is None


def test_what_was_left_out_or_failed_is_noted():
    board = [{"candidate": name, "status": "no time"} for name in ("a", "b, c", "d", "e", "f")]
    board.append({"candidate": "g", "status": "failed: no luck"})
    learner = SimpleNamespace(members_=[], leaderboard_=board, oof_rows_=np.arange(3), max_time=1.0)
    assert note_limits(learner, 9) == [
        "There was no time for 'a', 'b, c', 'd', 'e' and 1 others. Raise --time-limit to try them.",
        "Only 3 of 9 labelled rows were held out. Raise --time-limit to test more.",
        "g could not be fitted: no luck",
    ]


def test_a_clock_tells_what_is_left_and_never_nothing():
    assert Clock(None).left is None
    assert 0 < Clock(1e-9).left < 0.01
    assert 999.0 < Clock(1000.0).left <= 1000.0
