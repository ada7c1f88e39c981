import json
import pickle
import zipfile
from datetime import date

import numpy as np
import pytest
from checks.model_files import craft, forge, named, read_parts, walk, write_parts
from checks.rounding import assert_same_but_for_rounding
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, QuantileTransformer, StandardScaler
from sklearn.svm import LinearSVC

import kernelweave
from kernelweave import (
    RBF,
    AlignedKernelLearner,
    CGBoostClassifier,
    ForestKernel,
    FromCallable,
    HarmonicClassifier,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    Normalized,
    OnColumns,
    Polynomial,
    Preprocessed,
    SemiSupervisedSplit,
    SSMKClassifier,
    SSMKRegressor,
    manifold_family,
)
from kernelweave.errors import KernelweaveError
from kernelweave.kernels.cluster import ClusterKernel, DiffusionKernel
from kernelweave.model_selection import SemiSupervisedCalibration, labeled_scorer
from kernelweave.persistence import load, load_with_about, save

skops = pytest.importorskip("skops.io")
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
        lambda: SSMKClassifier([ForestKernel(20), ManifoldKernel(ForestKernel(20), 5, metric="kernel")]),
        lambda: make_pipeline(StandardScaler(), SemiSupervisedCalibration(SSMKClassifier())),
    ],
    ids=[
        "every kind of kernel",
        "deformed",
        "deformed family",
        "inside others",
        "spectral",
        "trees",
        "pipeline with calibration",
    ],
)
def test_a_loaded_model_predicts_the_same(make, data, tmp_path):
    X, y = data
    model = make().fit(X, y)
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert_same_but_for_rounding(again.decision_function(X), model.decision_function(X))


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
    assert_same_but_for_rounding(again.decision_function(X), model.decision_function(X))
    assert model.n_evaluations_ == again.expansion_.n_evaluations == 25
    n_bytes = sum(len(pickle.dumps(group.bound)) for group in model.expansion_.groups)
    assert n_bytes < 10_000  # the features of the sample have 400,000


def test_a_file_holds_the_eigenfunctions_of_a_base_once(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 4))
    kernels = [ClusterKernel(RBF(), "polynomial", 8, degree, n_landmarks=25) for degree in (1, 2, 4)]
    model = MKLClassifier(kernels, norm=2).fit(X, X[:, 0] > 0)
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    assert_same_but_for_rounding(again.decision_function(X), model.decision_function(X))
    assert len(model.expansion_.groups) == 3
    assert model.n_evaluations_ == again.expansion_.n_evaluations == 25
    assert sum(len(pickle.dumps(group.bound)) for group in model.expansion_.groups) < 12_000  # the sample has 32,000


SPARSE_FORMS = [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array]


@pytest.mark.parametrize("form", SPARSE_FORMS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: SSMKClassifier([Linear(), ManifoldKernel(RBF(), n_landmarks=20)]),
        lambda: CGBoostClassifier(penalty="rkhs"),
        lambda: MKLClassifier([RBF(), Normalized(Linear())]),
        lambda: HarmonicClassifier(),
        lambda: HarmonicClassifier(metric="euclidean", edge_weights="self_tuning"),
        lambda: make_pipeline(AlignedKernelLearner([Linear(), RBF()]), KNeighborsClassifier(algorithm="brute")),
        lambda: KNeighborsClassifier(algorithm="brute"),
    ],
    ids=["deformed", "boosted", "one sum", "angles", "distances", "pipeline", "of scikit-learn"],
)
def test_a_loaded_model_of_sparse_rows_predicts_the_same(make, form, data, tmp_path):
    X, y = data
    thin = form(np.where(np.abs(X) > 0.3, X, 0.0))
    model = make().fit(thin[:40] if form in SPARSE_FORMS[:2] else form(thin.tocsr()[:40]), y[:40].astype(str))
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    for rows in (thin, X):
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


def corner(path, form=sparse.csr_matrix):
    """Save a sparse matrix of shape (2, 3) with three entries, in place of a model."""
    save(form(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])), path)


def test_a_file_that_is_rewritten_as_it_was_is_loaded(tmp_path):
    corner(tmp_path / "m.skops")
    craft(tmp_path / "m.skops", shape=np.array([2, 3]))
    assert load(tmp_path / "m.skops").toarray().tolist() == [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize(
    "arrays",
    [
        {"indices": np.array([0, 10**9, 1])},
        {"indices": np.array([0, -(10**9), 1])},
        {"indptr": np.array([0, 10**9, 3])},
        {"indptr": np.array([0, 10**9, 0])},  # the last pointer is the number of entries: scipy has nothing to check
        {"indptr": np.array([0, 10**9, -1])},
        {"indptr": np.array([0, 3, 10**9])},
        {"indptr": np.array([1, 2, 3])},
        {"indptr": np.array([0, 3])},
        {"shape": np.array([2, 2])},
        {"shape": np.array([10**9, 3])},
        {"data": np.ones(2)},
        {"data": np.array(["a", "b", "c"])},
        {"data": np.ones((3, 1, 1)), "format": np.array(b"bsr")},
        {"format": np.array(b"csc"), "shape": np.array([3, 2])},
        {"format": np.array(b"none")},
    ],
    ids=lambda arrays: " ".join(f"{name} {value.tolist()}" for name, value in arrays.items()),
)
def test_a_sparse_matrix_that_is_not_what_it_says_is_refused(arrays, form, tmp_path):
    corner(tmp_path / "m.skops", form)
    craft(tmp_path / "m.skops", **arrays)
    with pytest.raises(ValueError, match=rf"is not a model file .*{form.__name__}.*copy it again"):
        load(tmp_path / "m.skops")


@pytest.mark.parametrize(
    "loader, content",
    [
        ("ObjectNode", lambda node: {"content": node}),  # would take arrays of the file for indices as they come
        ("ConstructorFromReduceNode", lambda node: {"content": node}),
        ("ListNode", lambda node: {"content": [node]}),
        ("TypeNode", lambda node: {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_sparse_matrix_is_built_in_the_way_that_is_checked_and_in_no_other(loader, content, tmp_path):
    save({"indptr": np.array([0, 10**9, 0])}, tmp_path / "m.skops")
    craft(tmp_path / "m.skops", lambda node: named(content(node), "scipy.sparse._csr.csr_matrix", loader))
    with pytest.raises(ValueError, match=r"does not load from files: scipy.sparse._csr.csr_matrix"):
        load(tmp_path / "m.skops")


def test_a_sparse_matrix_says_which_it_is(tmp_path):
    corner(tmp_path / "m.skops")  # skops trusts the base of all of them, and checks none
    change = lambda node: named(node, "scipy.sparse._matrix.spmatrix", "SparseMatrixNode")  # noqa: E731
    craft(tmp_path / "m.skops", change, indices=np.array([0, 10**9, 1]))
    with pytest.raises(ValueError, match=r"does not load from files: scipy.sparse._matrix.spmatrix"):
        load(tmp_path / "m.skops")


def test_other_sparse_matrices_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"load would refuse: scipy.sparse._coo.coo_matrix"):
        corner(tmp_path / "m.skops", sparse.coo_matrix)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("older", [3, 4, 5])  # format 5: before files had a digest
def test_a_file_of_an_older_version_is_refused_with_what_to_do(older, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = kernelweave.SSMKClassifier(kernelweave.RBF()).fit(X, X[:, 0] > 0)
    monkeypatch.setattr("kernelweave.persistence.model_file.FORMAT", older)
    save(model, tmp_path / "m.skops")
    monkeypatch.undo()
    write_parts(tmp_path / "m.skops", read_parts(tmp_path / "m.skops"), sealed=False)  # they had no digest
    message = (
        rf"m.skops is a model file of format {older}, and this version of kernelweave reads format 6 only: "
        "fit the model again, or load it with the version that wrote it[.]$"
    )
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "m.skops")


def test_objects_of_other_packages_are_refused(data, tmp_path):
    X, y = data
    model = make_pipeline(FunctionTransformer(json.loads, validate=False), SSMKClassifier())
    model.steps[1] = ("model", SSMKClassifier().fit(X, y))
    with pytest.raises(ValueError, match=r"load would refuse: json.*save the model with pickle"):
        save(model, tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []
    forge(tmp_path / "m.skops", model)
    with pytest.raises(ValueError, match="does not load from files: json"):
        load(tmp_path / "m.skops")


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda y: SSMKClassifier([FromCallable(lambda A, B: A @ B.T)]), "<lambda>"),
        (lambda y: SSMKClassifier(callback=lambda state: None), "<lambda>"),
        (lambda y: RandomForestClassifier(2), "sklearn.tree._tree.Tree"),
        (lambda y: HistGradientBoostingClassifier(max_iter=2), "TreePredictor"),
        (lambda y: KNeighborsClassifier(algorithm="kd_tree"), "KDTree"),
    ],
    ids=["a function as kernel", "a callback", "trees", "binned trees", "neighbor trees"],
)
def test_what_could_not_be_loaded_is_not_saved(make, name, data, tmp_path):
    X, y = data
    model = make(y).fit(X[:40], y[:40].astype(str))
    (tmp_path / "m.skops").write_bytes(b"an earlier one")
    with pytest.raises(ValueError, match=f"load would refuse: .*{name}"):
        save(model, tmp_path / "m.skops")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"an earlier one"]


def test_callbacks_of_scikit_learn_are_neither_saved_nor_loaded(data, tmp_path):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")
    X, y = data
    model = SSMKClassifier().fit(X, y).set_callbacks(callback.ScoringMonitor(scoring="accuracy"))
    with pytest.raises(ValueError, match=r"load would refuse: sklearn.callback.*set_callbacks\(\)"):
        save(model, tmp_path / "m.skops")
    forge(tmp_path / "m.skops", model)  # built, it would connect to an address out of the file
    with pytest.raises(ValueError, match=r"does not load from files: sklearn.callback"):
        load(tmp_path / "m.skops")
    save(model.set_callbacks(), tmp_path / "m.skops")


def test_dates_as_classes_are_not_saved(data, tmp_path):
    X, _ = data
    model = SSMKClassifier().fit(X, np.where(X[:, 0] > 0, date(2020, 1, 1), date(2021, 1, 1)))
    with pytest.raises(ValueError, match=r"load would refuse: datetime.date.*name classes by strings"):
        save(model, tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def test_what_skops_cannot_write_is_refused(tmp_path):
    with pytest.raises(ValueError, match="This SSMKClassifier cannot be saved"):
        save(SSMKClassifier(random_state=(i for i in range(3))), tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: GridSearchCV(SSMKClassifier(), {"C": [1, 10]}, cv=2),
        lambda: GridSearchCV(SSMKClassifier(), {"C": [1, 10]}, cv=2, scoring=make_scorer(balanced_accuracy_score)),
        lambda: GridSearchCV(
            SSMKClassifier(), {"C": [1]}, cv=SemiSupervisedSplit(2), scoring=labeled_scorer("accuracy")
        ),
        lambda: make_pipeline(SelectKBest(f_classif, k=2), CalibratedClassifierCV(SSMKClassifier(), cv=2)),
        lambda: CalibratedClassifierCV(CGBoostClassifier(), method="isotonic", cv=2),
        lambda: make_pipeline(PolynomialFeatures(), QuantileTransformer(n_quantiles=10), PCA(2), LinearSVC()),
    ],
    ids=[
        *("grid search", "with a metric", "with a splitter and a scorer of ours", "selection and calibration"),
        *("isotonic calibration", "other transformers"),
    ],
)
def test_what_comes_from_scikit_learn_is_loaded(make, data, tmp_path):
    X, y = data
    model = make().fit(X[:40], y[:40].astype(str))
    save(model, tmp_path / "m.skops")
    np.testing.assert_array_equal(load(tmp_path / "m.skops").predict(X), model.predict(X))


def test_a_file_cannot_call_functions_of_kernelweave(tmp_path):
    save([str(tmp_path / "written"), b"by the file"], tmp_path / "m.skops")
    name = "kernelweave.files.atomic_write"
    craft(tmp_path / "m.skops", lambda node: named({"content": node}, name, "ConstructorFromReduceNode"))
    with pytest.raises(ValueError, match=f"does not load from files: {name}"):
        load(tmp_path / "m.skops")
    assert [path.name for path in tmp_path.iterdir()] == ["m.skops"]


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


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_damaged_archive_of_any_kind_is_refused_with_a_sentence(compression, tmp_path):
    with zipfile.ZipFile(tmp_path / "m.skops", "w", compression) as archive:
        archive.writestr("schema.json", json.dumps({"a": list(range(1000))}))
    data = bytearray((tmp_path / "m.skops").read_bytes())
    for place in range(30, len(data), 7):
        spoiled = data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]
        (tmp_path / "m.skops").write_bytes(spoiled)
        with pytest.raises(ValueError, match=r"is not a model file of kernelweave|was not written by"):
            load(tmp_path / "m.skops")


def test_a_missing_file_is_a_file_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.skops")


def test_a_failed_save_leaves_nothing_behind(data, tmp_path):
    X, y = data
    (tmp_path / "folder").mkdir()
    with pytest.raises(KernelweaveError, match="cannot be written"):
        save(SSMKClassifier().fit(X, y), tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_without_skops_the_remedy_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'kernelweave\[io\]'"):
        kernelweave.load(tmp_path / "m")


def test_a_model_of_another_scikit_learn_is_loaded_with_one_warning(data, tmp_path):
    X, y = data
    save(make_pipeline(StandardScaler(), SSMKClassifier()).fit(X, y), tmp_path / "m.skops")
    parts = read_parts(tmp_path / "m.skops")
    for node in walk(parts["schema.json"]):
        content = node.get("content")
        if isinstance(content, dict) and "_sklearn_version" in content:
            content["_sklearn_version"]["content"] = '"1.5.0"'
    parts["schema.json"]["content"]["versions"]["content"]["scikit-learn"]["content"] = '"1.5.0"'
    write_parts(tmp_path / "m.skops", parts)
    with pytest.warns(UserWarning, match=r"m.skops was saved with scikit-learn 1.5.0, and this is") as warned:
        load(tmp_path / "m.skops")
    assert len(warned) == 1
    assert warned[0].filename == __file__
