import json
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import kernelweave
from kernelweave import (
    RBF,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    Normalized,
    OnColumns,
    Polynomial,
    Preprocessed,
    SSMKClassifier,
    SSMKRegressor,
    manifold_family,
)
from kernelweave.kernels.cluster import ClusterKernel, DiffusionKernel
from kernelweave.model_selection import SigmoidCalibratedClassifier
from kernelweave.persistence import load, load_with_about, save
from kernelweave.tables import TableError

pytest.importorskip("skops")
LIBRARY = [
    Linear(),
    OnColumns(RBF(), [0, 1], missing="center"),
    Normalized(Polynomial()),
    Preprocessed(StandardScaler(), RBF()),
    2.0 * Linear() + RBF(),
]


@pytest.fixture
def data():
    X = np.random.default_rng(0).normal(size=(80, 3))
    return X, np.where(np.arange(80) < 40, np.where(X[:, 0] > 0, "yes", "no"), None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SSMKClassifier(LIBRARY),
        lambda: SSMKClassifier([RBF(), ManifoldKernel(RBF(), 5)]),
        lambda: SSMKClassifier([*manifold_family(n_neighbors=(5,)), OnColumns(ManifoldKernel(Linear()), [0, 2])]),
        lambda: SSMKClassifier([Normalized(ManifoldKernel(RBF(), n_landmarks=20)), Linear() + ManifoldKernel(RBF())]),
        lambda: SSMKClassifier([ClusterKernel(RBF()), OnColumns(DiffusionKernel(RBF(), n_landmarks=20), [0, 2])]),
        lambda: make_pipeline(StandardScaler(), SigmoidCalibratedClassifier(SSMKClassifier())),
    ],
    ids=[
        "every kind of kernel",
        "deformed",
        "deformed family",
        "inside others",
        "spectral",
        "pipeline with calibration",
    ],
)
def test_a_loaded_model_predicts_the_same(make, data, tmp_path):
    X, y = data
    model = make().fit(X, y)
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_loaded_model_still_knows_its_certificate(data, tmp_path):
    X, _ = data
    model = SSMKRegressor(LIBRARY).fit(X, X[:, 0])
    save(model, tmp_path / "m.skops", target="height", versions=[1, 2])
    again, about = load_with_about(tmp_path / "m.skops")
    assert again.certificate_ == model.certificate_
    assert again.status_ is model.status_
    assert again.library_ == model.library_
    assert about == {"target": "height", "versions": [1, 2]}


def test_a_file_holds_the_anchors_of_deformed_kernels_and_not_the_sample(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 4))
    y = np.where(np.arange(2000) < 40, X[:, 0] > 0, np.nan)
    kernels = manifold_family(n_neighbors=(5,), n_landmarks=25)
    model = SSMKClassifier(kernels, column_scale="norm").fit(X, y)
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert model.n_evaluations_ == again.expansion_.n_evaluations == 25
    n_bytes = sum(len(pickle.dumps(group.bound)) for group in model.expansion_.groups)
    assert n_bytes < 10_000  # the features of the sample have 400,000


def test_a_file_holds_the_eigenfunctions_of_a_base_once(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 4))
    kernels = [ClusterKernel(RBF(), "polynomial", 8, degree, n_landmarks=25) for degree in (1, 2, 4)]
    model = MKLClassifier(kernels, norm=2).fit(X, X[:, 0] > 0)
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert len(model.expansion_.groups) == 3
    assert model.n_evaluations_ == again.expansion_.n_evaluations == 25
    assert sum(len(pickle.dumps(group.bound)) for group in model.expansion_.groups) < 12_000  # the sample has 32,000


def test_objects_of_other_packages_are_refused(data, tmp_path):
    X, y = data
    model = make_pipeline(FunctionTransformer(json.loads, validate=False), SSMKClassifier())
    model.steps[1] = ("model", SSMKClassifier().fit(X, y))
    save(model, tmp_path / "m.skops")
    with pytest.raises(ValueError, match="does not load from files: json"):
        load(tmp_path / "m.skops")


@pytest.mark.parametrize("content", [b"", b"nonsense", pickle.dumps([1, 2])])
def test_a_file_that_is_no_model_is_refused(content, tmp_path):
    (tmp_path / "m.skops").write_bytes(content)
    with pytest.raises(ValueError, match="is not a model file of kernelweave"):
        load(tmp_path / "m.skops")


def test_a_zip_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as archive:
        archive.writestr("a.txt", "b")
    with pytest.raises(ValueError, match="is not a model file of kernelweave"):
        load(tmp_path / "m.skops")


def test_a_missing_file_is_a_file_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.skops")


def test_a_failed_save_leaves_nothing_behind(data, tmp_path):
    X, y = data
    (tmp_path / "folder").mkdir()
    with pytest.raises(TableError, match="cannot be written"):
        save(SSMKClassifier().fit(X, y), tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_without_skops_the_remedy_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'kernelweave\[io\]'"):
        kernelweave.load(tmp_path / "m")
