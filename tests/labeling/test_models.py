import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import AutoKernelClassifier, AutoKernelRegressor
from kernelweave.labeling.models import ClassModel, NumberModel


@pytest.fixture(name="X")
def rows():
    return np.random.default_rng(0).normal(size=(60, 2))


def classifier(X, n_classes=2, n_labeled=40):
    y = np.array(["a", "b", "c"], dtype=object)[np.digitize(X[:, 0], [-0.3, 0.5][: n_classes - 1])]
    y[n_labeled:] = None
    return AutoKernelClassifier(["harmonic"], combine="best", random_state=0).fit(X, y)


def regressor(X, n_labeled=40):
    y = np.where(np.arange(60) < n_labeled, X[:, 0], np.nan)
    return AutoKernelRegressor(["SVM"], combine="best", random_state=0).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_label_is_the_most_probable_class(X, n_classes):
    learner = classifier(X, n_classes)
    model = ClassModel(learner, True, 0.9)
    texts, extra = model.fill_cells(X, "y")
    P = learner.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), texts)
    np.testing.assert_array_equal(learner.classes_[P.argmax(axis=1)], texts)
    np.testing.assert_allclose(np.array(extra["y_probability"], dtype=float), P.max(axis=1), atol=1e-4)
    written = np.column_stack([extra[f"y_probability_{name}"] for name in learner.classes_]).astype(float)
    np.testing.assert_allclose(written, P, atol=1e-4)
    second = np.sort(P, axis=1)[:, -2]
    np.testing.assert_allclose(np.exp(np.array(extra["y_margin"], dtype=float)) * second, P.max(axis=1), rtol=1e-3)
    for text, chosen in zip(extra["y_set"], learner.predict_set(X, 0.9), strict=True):
        assert text.split("|") == learner.classes_[chosen].tolist()


def test_columns_are_appended_only_if_they_are_asked_for(X):
    assert list(ClassModel(classifier(X), False, None).fill_cells(X, "y")[1]) == ["y_probability", "y_margin"]


def test_without_held_out_rows_there_are_labels_and_no_probabilities(X):
    learner = classifier(X, n_labeled=6)
    assert learner.error_ is None
    texts, extra = ClassModel(learner, False, 0.9).fill_cells(X, "y")
    np.testing.assert_array_equal(texts, learner.predict(X))
    assert set(extra["y_probability"]) == {""}
    assert set(extra["y_set"]) == {"a|b"}  # nothing is known, so nothing can be left out


def test_numbers_are_written_as_the_given_ones_are(X):
    learner = regressor(X)
    texts, extra = NumberModel(learner, 1e6, 1e4, 0.9, ".0f", ".").fill_cells(X, "y")
    assert all(text.isdigit() for text in texts)
    width = 1e4 * np.ptp(learner.predict_interval(X[:1], 0.9))
    assert float(extra["y_high"][0]) - float(extra["y_low"][0]) == pytest.approx(width, abs=1.0)
    texts, _ = NumberModel(learner, 0.0, 1.0, 0.9, ".2f", ",").fill_cells(X, "y")
    assert all(len(text.partition(",")[2]) == 2 for text in texts)
    model = NumberModel(learner, 2e-11, 1e-12, 0.9, ".3e", ",")
    texts, extra = model.fill_cells(X, "y")
    np.testing.assert_allclose(
        [float(text.replace(",", ".")) for text in texts], 2e-11 + 1e-12 * learner.predict(X), 1e-3
    )
    assert all("," in text and "e-11" in text for text in extra["y_high"])
    assert model.write_label(1.0) == "2,100e-11"


def test_an_interval_for_which_rows_are_too_few_is_empty(X):
    extra = NumberModel(regressor(X), 0.0, 1.0, 0.999, ".2f", ".").fill_cells(X, "y")[1]
    assert set(extra["y_low"]) == set(extra["y_high"]) == {""}


def test_a_fitted_model_is_the_last_step_of_a_pipeline(X):
    model = NumberModel(regressor(X), 2.0, 3.0, 0.9, ".2f", ".")
    pipeline = Pipeline([("scale", StandardScaler(with_mean=False, with_std=False).fit(X)), ("model", model.fit(X))])
    np.testing.assert_allclose(pipeline.predict(X), 2.0 + 3.0 * model.learner.predict(X))
