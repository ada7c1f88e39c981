import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import SSMKClassifier, SSMKRegressor
from kernelweave.labeling.models import ClassModel, NumberModel
from kernelweave.model_selection import SemiSupervisedCalibration
from kernelweave.model_selection.scaling import Scaling


@pytest.fixture(name="X")
def rows():
    return np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_label_is_the_most_probable_class(X, n_classes):
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.3, 0.5][: n_classes - 1])]
    calibrated = SemiSupervisedCalibration(SSMKClassifier(), random_state=0).fit(X, labels)
    scaling = Scaling(calibrated.center_, calibrated.unit_, calibrated.slope_, calibrated.offset_)
    model = ClassModel(calibrated.estimator_, scaling)
    texts, extra = model.fill_cells(X, "y")
    np.testing.assert_array_equal(model.predict(X), texts)
    probabilities = np.array(extra["y_probability"], dtype=float)
    np.testing.assert_allclose(probabilities, calibrated.predict_proba(X).max(axis=1), atol=1e-4)
    np.testing.assert_array_equal(texts, calibrated.predict(X))
    assert (np.array(extra["y_margin"], dtype=float) >= 0).all()


def test_without_probabilities_the_label_is_the_learners(X):
    learner = SSMKClassifier().fit(X, X[:, 0] > 0)
    texts, extra = ClassModel(learner, None).fill_cells(X, "y")
    np.testing.assert_array_equal(texts, learner.predict(X))
    assert set(extra["y_probability"]) == {""}


def test_numbers_are_written_as_the_given_ones_are(X):
    learner = SSMKRegressor().fit(X, X[:, 0])
    texts, extra = NumberModel(learner, 1e6, 1e4, 500.0, ".0f", ".").fill_cells(X, "y")
    assert all(text.isdigit() for text in texts)
    assert float(extra["y_high"][0]) - float(extra["y_low"][0]) == pytest.approx(1000.0, abs=1.0)
    texts, _ = NumberModel(learner, 0.0, 1.0, 1.0, ".2f", ",").fill_cells(X, "y")
    assert all(len(text.partition(",")[2]) == 2 for text in texts)
    texts, extra = NumberModel(learner, 2e-11, 1e-12, 1e-12, ".3e", ",").fill_cells(X, "y")
    np.testing.assert_allclose(
        [float(text.replace(",", ".")) for text in texts], 2e-11 + 1e-12 * learner.predict(X), 1e-3
    )
    assert all("," in text and "e-11" in text for text in extra["y_high"])
    assert set(NumberModel(learner, 0.0, 1.0, np.nan, ".2f", ".").fill_cells(X, "y")[1]["y_low"]) == {""}


def test_a_fitted_model_is_the_last_step_of_a_pipeline(X):
    model = NumberModel(SSMKRegressor().fit(X, X[:, 0]), 2.0, 3.0, 1.0, ".2f", ".")
    pipeline = Pipeline([("scale", StandardScaler(with_mean=False, with_std=False).fit(X)), ("model", model.fit(X))])
    np.testing.assert_allclose(pipeline.predict(X), 2.0 + 3.0 * model.learner.predict(X))
