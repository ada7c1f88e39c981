"""The classifier: what it gives out, what it says of its error, and labels of every awkward kind."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from checks.auto_fits import protect, statuses
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from kernelweave import (
    RBF,
    AutoKernelClassifier,
    HarmonicClassifier,
    Linear,
    OnColumns,
    load,
    one_kernel_per_group,
    save,
)
from kernelweave.solvers.result import Status

CHEAP = ["RKDA", "harmonic", "SVM"]
PAIR = [RBF(), Linear()]
pytestmark = pytest.mark.filterwarnings("ignore:The labelled rows have equally many")


def make(candidates=CHEAP, **options):
    return AutoKernelClassifier(candidates, **{"kernels": PAIR, "n_repeats": 1, "random_state": 0, **options})


@cache
def blobs(n=90, n_labeled=40, n_classes=3, distance=4.0, seed=0):
    """Rows, classes, and the classes of the first rows with NaN for the others; read-only."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, 4))
    X[:, :n_classes] += distance * np.eye(n_classes)[truth]
    y = np.where(np.arange(n) < n_labeled, truth, np.nan)
    return protect(X, truth, y)


@cache
def fitted():
    X, _, y = blobs()
    return make().fit(X, y)


# What it gives out


def test_classes_far_apart_are_found_and_the_error_is_said():
    X, truth, _ = blobs()
    model = fitted()
    assert model.score(X, truth) > 0.95
    assert model.error_.low <= np.mean(model.transduction_ != truth) + 0.05
    assert model.error_.n_rows == 40
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.oof_rows_, np.arange(40))
    assert sum(member.weight for member in model.members_) == pytest.approx(1.0)
    assert set(statuses(model)) == set(CHEAP)


def test_distributions_are_certain_of_given_labels_and_probabilities_elsewhere():
    X, truth, _ = blobs()
    model = fitted()
    np.testing.assert_array_equal(model.label_distributions_[:40], np.eye(3)[truth[:40]])
    np.testing.assert_allclose(model.label_distributions_[40:], model.predict_proba(X)[40:])


def test_the_error_is_that_of_probabilities_without_own_labels():
    _, truth, _ = blobs()
    model = fitted()
    wrong = model.oof_probabilities_.argmax(axis=1) != truth[model.oof_rows_]
    assert model.error_.value == pytest.approx(wrong.mean())


def test_what_each_candidate_predicts_of_held_out_rows_is_kept():
    _, truth, _ = blobs()
    model = fitted()
    assert list(model.candidate_predictions_) == CHEAP
    for rows, predicted in model.candidate_predictions_.values():
        np.testing.assert_array_equal(rows, model.oof_rows_)
        assert np.mean(predicted == truth[rows]) > 0.9


@pytest.mark.parametrize("combine", ["stack", "best"])
def test_one_candidate_alone_keeps_its_classes(combine):
    X, _, y = blobs()
    model = make(["RKDA"], combine=combine).fit(X, y)
    alone = model.members_[0].model
    assert model.members_[0].weight == 1.0
    assert np.mean(model.predict(X) == alone.predict(X)) > 0.97  # vector scaling may move a threshold


def test_sets_hold_the_most_probable_class_and_grow_with_the_coverage():
    X, truth, _ = blobs()
    model = fitted()
    narrow, wide = (model.predict_set(X, coverage) for coverage in (0.6, 0.95))
    assert narrow.shape == (90, 3)
    assert narrow.dtype == bool
    assert (narrow <= wide).all()
    assert narrow[np.arange(90), model.predict_proba(X).argmax(axis=1)].all()
    assert wide[np.arange(90), truth].mean() >= 0.9
    assert model.predict_set(X, 0.999).all()  # 40 rows are too few to say so


def test_a_flipped_label_is_the_first_suspect():
    X, truth, y = blobs()
    wrong = y.copy()
    wrong[7] = (truth[7] + 1) % 3
    suspects = make().fit(X, wrong).suspect_labels(3)
    assert len(suspects) == 3
    assert suspects[0]["row"] == 7
    assert suspects[0]["given"] == wrong[7]
    assert suspects[0]["suggested"] == truth[7]
    assert suspects[0]["score"] >= suspects[1]["score"]
    assert len(fitted().suspect_labels()) == 40


@pytest.mark.parametrize("n", [1, 5, 50, 1000])
def test_rows_to_label_next_are_unlabelled_ones_each_once(n):
    rows = fitted().label_next(n)
    assert len(rows) == len(set(rows.tolist())) == min(n, 50)
    assert rows.min() >= 40


@pytest.mark.parametrize("n", [-3, 2.5, "5"])
def test_numbers_of_rows_that_are_none_are_refused_by_name(n):
    for method in ("label_next", "suspect_labels"):
        with pytest.raises(ValueError, match=rf"{method} got n={n!r}; expected .*a whole number, 0 or more"):
            getattr(fitted(), method)(n)


def test_where_all_rows_have_labels_there_is_none_to_label_next():
    X, truth, _ = blobs()
    model = make(["RKDA"]).fit(X, truth)
    assert len(model.label_next(3)) == 0
    np.testing.assert_array_equal(model.transduction_, truth)


def test_the_best_single_model_has_a_certificate_and_is_a_copy():
    X, truth, _ = blobs()
    single = fitted().refit_single()
    assert single is not fitted().best_estimator_
    assert single.certificate_.gap >= 0.0
    assert single.score(X, truth) > 0.9
    assert make([LogisticRegression()], kernels=None).fit(X, truth).refit_single() is None


def test_the_explanation_names_error_members_and_certificates():
    text = fitted().explain()
    assert text.startswith("Share of wrong classes of held-out rows: ")
    assert all(member.name in text for member in fitted().members_)
    assert "Did unlabelled rows help?" in text
    assert "duality gap" in text


def test_a_model_from_a_file_says_the_same(tmp_path):
    pytest.importorskip("skops")
    X, _, y = blobs()
    model = make(["RKDA", "logistic regression", "gradient boosting"]).fit(X, y)
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    assert again.explain() == model.explain()
    assert again.suspect_labels(2) == model.suspect_labels(2)
    np.testing.assert_array_equal(again.label_next(4), model.label_next(4))


def test_what_needs_a_fit_says_so():
    for method in ("explain", "suspect_labels", "label_next", "refit_single"):
        with pytest.raises(NotFittedError):
            getattr(make(), method)()


# Labels


def test_labels_that_are_noise_have_an_error_that_chance_explains():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 4)), rng.integers(2, size=120).astype(float)
    y[80:] = np.nan
    model = make([*CHEAP, "logistic regression"]).fit(X, y)
    assert model.error_.low <= 0.5 <= model.error_.high
    # No certainty is made of noise: the mean confidence is near one half.
    assert model.predict_proba(X[80:]).max(axis=1).mean() < 0.75
    assert model.unlabeled_helped_.verdict == "no clear difference"


def test_one_source_of_nine_that_tells_the_classes_is_found():
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 2
    X = rng.normal(size=(120, 27))
    X[:, 12:15] += 3.0 * (2 * truth[:, None] - 1)
    y = np.where(np.arange(120) < 40, truth, np.nan)
    sources = one_kernel_per_group({f"source {k}": slice(3 * k, 3 * k + 3) for k in range(9)})
    model = make(["MKL", "RKDA"], kernels=sources).fit(X, y)
    assert np.mean(model.transduction_[40:] == truth[40:]) > 0.9
    assert model.error_.high < 0.5
    assert len(model.refit_single().library_.entries) == 9


def test_shares_of_the_classes_that_are_known_correct_labels_drawn_by_class():
    rng = np.random.default_rng(0)
    truth = (rng.random(400) < 0.1).astype(int)  # one in ten
    X = rng.normal(size=(400, 2)) + 1.2 * truth[:, None]
    labeled = np.concatenate([np.flatnonzero(truth == k)[:15] for k in (0, 1)])
    y = np.full(400, np.nan)
    y[labeled] = truth[labeled]
    hidden = np.isnan(y)
    plain, told = (make(["RKDA", "SVM"], class_prior=prior).fit(X, y) for prior in (None, 0.1))
    np.testing.assert_allclose(told.class_factors_, [0.9 / 0.5, 0.1 / 0.5])
    np.testing.assert_allclose(plain.class_factors_, 1.0)
    errors = [np.mean(model.transduction_[hidden] != truth[hidden]) for model in (plain, told)]
    assert errors[1] < errors[0]
    share = [model.predict_proba(X[hidden])[:, 1].mean() for model in (plain, told)]
    assert abs(share[1] - 0.1) < abs(share[0] - 0.1)
    wrong = told.oof_probabilities_.argmax(axis=1) != truth[told.oof_rows_]
    stated = np.average(wrong, weights=told.class_factors_[truth[told.oof_rows_]])  # as among unlabelled rows
    assert told.error_.value == pytest.approx(stated)
    with pytest.raises(ValueError, match=r"AutoKernelClassifier got class_prior=1\.5"):
        make(class_prior=1.5).fit(X, y)


def skewed_blobs():
    """Two classes that overlap, of which the second is one row in ten; six labels, three for each."""
    rng = np.random.default_rng(1)
    truth = (np.arange(200) % 10 == 0).astype(int)
    X = rng.normal(size=(200, 2)) + 2.0 * truth[:, None]
    y = np.full(200, np.nan)
    for k in (0, 1):
        y[np.flatnonzero(truth == k)[:3]] = k
    return X, y


@pytest.mark.parametrize("name", ["TSVM", "RKDA", "harmonic"])
def test_shares_that_a_candidate_was_told_of_are_not_counted_again(name):
    X, y = skewed_blobs()
    model = make([name], class_prior=0.1).fit(X, y)
    assert model.error_ is None  # the scaling is a guess
    assert model.members_[0].model.class_prior == {0.0: 0.9, 1.0: 0.1}
    np.testing.assert_allclose(model.class_factors_, [0.9 / 0.5, 0.1 / 0.5])
    np.testing.assert_array_equal(model.predict(X), model.members_[0].model.predict(X))


def test_shares_count_once_for_a_candidate_that_knows_nothing_of_them():
    X, y = skewed_blobs()
    plain, told = (make(["SVM"], class_prior=prior).fit(X, y) for prior in (None, 0.1))
    odds = told.decision_function(X) - plain.decision_function(X)
    np.testing.assert_allclose(odds, np.log(0.1 / 0.9), rtol=1e-9)


def test_five_labels_a_class_are_enough():
    X, truth, _ = blobs()
    model = make().fit(X, np.where(np.arange(90) < 15, truth, np.nan))
    assert model.error_.n_rows == 15
    assert np.mean(model.transduction_ == truth) > 0.85


def test_a_class_with_one_label_is_never_held_out_but_predicted():
    X, truth, _ = blobs(distance=8.0)
    y = np.where((np.arange(90) < 30) & (truth != 2), truth, np.nan)
    y[2] = 2
    model = make(["RKDA", "harmonic"]).fit(X, y)
    assert 2 not in model.oof_rows_
    assert model.error_.n_rows == 20
    assert np.mean(model.predict(X[truth == 2]) == 2) > 0.5


def test_where_labels_are_too_few_to_hold_some_out_nothing_is_said_of_the_error():
    X, truth, _ = blobs(distance=8.0)
    model = make().fit(X, np.where(np.arange(90) < 6, truth, np.nan))
    assert model.error_ is None
    assert model.unlabeled_helped_ is None
    assert len(model.oof_rows_) == 0
    np.testing.assert_allclose([member.weight for member in model.members_], 1 / 3)
    assert model.explain().startswith("There are too few labels")
    assert np.mean(model.transduction_ == truth) > 0.9
    assert model.suspect_labels() == []
    assert model.predict_set(X).all()


def test_equal_rows_do_not_flatter_the_error():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.integers(2, size=30)  # noise, which twins would tell
    model = make(["RKDA", "SVM"]).fit(np.vstack([X, X, X]), np.concatenate([y, y, y]))
    assert model.error_.high > 0.4


def test_rows_of_a_group_are_held_out_together():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 6)
    X = rng.normal(size=(10, 3))[groups] + 0.01 * rng.normal(size=(60, 3))  # a group is a point
    y = rng.integers(2, size=10)[groups]
    apart, together = make(["RKDA"]).fit(X, y), make(["RKDA"]).fit(X, y, groups=groups)
    assert together.error_.value > apart.error_.value + 0.1
    with pytest.raises(ValueError, match="groups must hold a value for each of 60 rows"):
        make(["RKDA"]).fit(X, y, groups=groups[:5])


def test_a_class_whose_rows_all_have_weight_zero_is_no_class():
    X, truth, _ = blobs()
    weight = np.where(truth == 2, 0.0, 1.0)
    model = make(["RKDA", "SVM"]).fit(X, truth, sample_weight=weight)
    np.testing.assert_array_equal(model.classes_, [0, 1])
    np.testing.assert_array_equal(model.transduction_, truth)
    np.testing.assert_array_equal(model.label_distributions_[truth == 2], 0.0)
    assert not np.isin(np.flatnonzero(truth == 2), model.oof_rows_).any()


def test_strings_are_labels_and_none_marks_the_others():
    X, truth, y = blobs()
    names = np.array(["rose", "tulip", "lily of the valley"])
    labels = np.where(np.isnan(y), None, names[truth])
    model = make().fit(X, labels)
    assert model.classes_.tolist() == sorted(names)
    assert np.mean(model.transduction_ == names[truth]) > 0.95
    assert model.suspect_labels(1)[0]["given"] in names


def test_minus_one_marks_rows_unless_it_is_said_to_be_a_class():
    X, truth, y = blobs()
    marked = make().fit(X, np.where(np.isnan(y), -1, truth))
    np.testing.assert_allclose(marked.predict_proba(X), fitted().predict_proba(X))
    as_class = make([HarmonicClassifier(), "RKDA"], unlabeled=None).fit(X, truth - 1)
    assert as_class.classes_.tolist() == [-1, 0, 1]
    assert as_class.score(X, truth - 1) > 0.95
    assert all(len(member.model.classes_) == 3 for member in as_class.members_)


# Containers


def test_frames_and_their_column_names_serve_kernels():
    X, _, y = blobs()
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = make(["RKDA"], kernels=[OnColumns(RBF(), ["a", "b", "c"]), OnColumns(Linear(), "d")])
    numbered = make(["RKDA"], kernels=[OnColumns(RBF(), [0, 1, 2]), OnColumns(Linear(), [3])])
    found, expected = named.fit(frame, y), numbered.fit(X, y)
    # Frames are kept by columns, so that products round elsewhere and steps end at another point of the tolerance.
    np.testing.assert_allclose(found.predict_proba(frame), expected.predict_proba(X), atol=1e-3)
    assert statuses(found) == {"RKDA": "tested"}


def test_sparse_rows_are_learned():
    X, truth, y = blobs()
    thin = sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    model = make([*CHEAP, "logistic regression"]).fit(thin, y)
    assert np.mean(model.transduction_ == truth) > 0.85
    assert not any(status.startswith("failed") for status in statuses(model).values())
    assert len(model.label_next(3)) == 3


def test_rows_that_lack_a_source_are_learned():
    X, truth, y = blobs()
    X = np.column_stack([X, X])
    X[::3, 4:] = np.nan
    kernels = [OnColumns(RBF(), [0, 1, 2, 3]), OnColumns(RBF(), [4, 5, 6, 7], missing="center")]
    model = make(["RKDA", "SVM"], kernels=kernels).fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.9
    assert statuses(model)["SVM"].startswith("failed: Input X contains NaN")
    assert len(model.label_next(3)) == 3


# Interrupts, seeds, failures


class Stop(ClassifierMixin, BaseEstimator):
    """Interrupts a fit, or fails."""

    def __init__(self, error=KeyboardInterrupt):
        self.error = error

    def fit(self, X, y):
        raise self.error("stop")


def test_an_interrupt_in_the_third_candidate_keeps_the_first_two_and_says_so():
    X, _, y = blobs()
    model = make(["RKDA", "harmonic", Stop(), "SVM"]).fit(X, y)
    assert model.status_ is Status.SEARCH_STOPPED
    assert set(statuses(model)) == {"RKDA", "harmonic"}
    assert model.score(X, y) > 0.9


def test_an_interrupt_before_any_candidate_leaves_the_estimator_as_it_was():
    X, _, y = blobs()
    model = make([Stop(), "RKDA"])
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    kept = dict(vars(model.set_params(candidates=["RKDA"]).fit(X, y)))
    with pytest.raises(KeyboardInterrupt):
        model.set_params(candidates=[Stop()]).fit(X, y)
    assert all(vars(model)[name] is value for name, value in kept.items() if name != "candidates")


def test_a_callback_ends_the_search_with_what_was_tried():
    X, _, y = blobs()
    phases = []
    model = make(callback=lambda state: phases.append(state.phase) or len(phases) == 3).fit(X, y)
    assert phases == ["trying RKDA", "trying harmonic", "trying SVM"]
    assert set(statuses(model)) == {"RKDA", "harmonic"}
    assert model.status_ is Status.SEARCH_STOPPED


def test_a_candidate_that_fails_is_listed_with_its_reason():
    X, _, y = blobs()
    model = make(["RKDA", ("broken", Stop(ValueError))]).fit(X, y)
    assert statuses(model) == {"RKDA": "tested", "broken": "failed: stop"}
    with pytest.raises(ValueError, match=r"No candidate could be fitted. Stop: stop"):
        make([Stop(ValueError)]).fit(X, y)


def test_without_time_one_candidate_is_fitted_and_the_status_says_so():
    X, _, y = blobs()
    model = make(max_time=1e-9).fit(X, y)
    assert model.status_ is Status.SEARCH_TIME
    assert sorted(statuses(model).values()) == ["no time", "no time", "not tested"]
    assert model.score(X, y) > 0.9


def test_the_same_seed_gives_the_same_bits_and_another_one_other_folds():
    X, _, y = blobs()
    model = make().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), fitted().predict_proba(X))
    assert model.error_ == fitted().error_
    other = make(random_state=1).fit(X, y)
    assert not np.array_equal(other.predict_proba(X), fitted().predict_proba(X))


def test_class_weights_count_in_the_error_and_in_the_table_alike():
    X, truth, _ = blobs(distance=1.0)
    model = make(["RKDA"], class_weight={0: 1.0, 1: 1.0, 2: 20.0}).fit(X, truth)
    wrong = model.oof_probabilities_.argmax(axis=1) != truth[model.oof_rows_]
    weight = np.array([1.0, 1.0, 20.0])[truth[model.oof_rows_]]
    assert model.error_.value == pytest.approx(np.average(wrong, weights=weight))
    assert model.leaderboard_[0]["error"] == pytest.approx(model.error_.value)
    plain = make(["RKDA"]).fit(X, truth)
    assert np.mean(model.predict(X) == 2) >= np.mean(plain.predict(X) == 2)
