import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

import kernelweave
from kernelweave import (
    RBF,
    ClusterKernel,
    ForestKernel,
    KernelLibrary,
    Linear,
    ManifoldKernel,
    OnColumns,
    Polynomial,
)
from kernelweave.estimators import lapsvm, rkda, tsvm
from kernelweave.estimators.shared import cg_boost, machine, memory
from kernelweave.estimators.shared.memory import (
    advise,
    binding_bytes,
    fits_machine,
    free_memory,
    graph_bytes,
    machine_memory,
    recipe_rank,
    require_memory,
    require_stack_memory,
    stack_bytes,
)

# name of the estimator: what its refusal names instead where hardly anything fits
REMEDIES = {
    "MKLClassifier": r"Use fewer rows\.",
    "MKLRegressor": r"Use fewer rows\.",
    "LapSVMClassifier": r"Use fewer rows, or one of HarmonicClassifier, RKDAClassifier and SSMKClassifier\.",
    "TSVMClassifier": r"Use fewer rows, or one of HarmonicClassifier, RKDAClassifier and SSMKClassifier\.",
    "TSVMMKLClassifier": r"Use fewer rows, or one of HarmonicClassifier, RKDAClassifier and SSMKClassifier\.",
    "RKDAClassifier": r"Use fewer rows, or SSMKClassifier, which reads kernels by blocks\.",
    "SSMKClassifier": r"Use fewer rows\.",
    "SSMKRegressor": r"Use fewer rows\.",
    "CGBoostClassifier": r"Use fewer rows\.",
    "CGBoostOneClass": r"Use fewer rows\.",
    "LabelAwareKernelLearner": r"Pass n_landmarks=\"auto\", or a number\.",
    "HarmonicClassifier": r"Pass fewer rows or a smaller n_neighbors\.",
    "HarmonicRegressor": r"Pass fewer rows or a smaller n_neighbors\.",
}
KERNELS = [RBF(), RBF(2.0)]
# estimator, and parameters that its refusal may name, each with the words in which it does
REMEDIED = [
    (kernelweave.MKLClassifier(KERNELS, n_landmarks=None), {"n_landmarks=200": {"n_landmarks": 200}}),
    (kernelweave.MKLClassifier(KERNELS, n_landmarks=None), {"fewer kernels": {"kernels": KERNELS[:1]}}),
    (kernelweave.MKLClassifier(RBF(), n_landmarks=None), {'dtype="float32"': {"dtype": "float32"}}),
    (kernelweave.LapSVMClassifier(RBF()), {"n_landmarks=100": {"n_landmarks": 100}, "ratio=100": {"ratio": 100.0}}),
    (kernelweave.RKDAClassifier(KERNELS, n_landmarks=None), {"n_landmarks=200": {"n_landmarks": 200}}),
    (
        kernelweave.TSVMClassifier(RBF()),
        {
            "ManifoldKernel(kernel, ratio=0, n_landmarks=1000)": {
                "kernel": ManifoldKernel(RBF(), ratio=0, n_landmarks=1000)
            }
        },
    ),
    (kernelweave.CGBoostClassifier(KERNELS), {"max_columns=100": {"max_columns": 100}}),
    (kernelweave.CGBoostClassifier(KERNELS), {"cache_size=0": {"cache_size": 0}}),
]
QUICK = ("RKDAClassifier", "HarmonicClassifier", "HarmonicRegressor")  # the others take seconds, traced


def problem(name, n_rows, n_labeled):
    """Rows, and labels of the first ones as an estimator takes them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 10))
    classes = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(float)
    if name.startswith("CGBoost"):
        return X, classes  # all rows have labels
    if name.endswith("Regressor") or name.startswith("MKL"):
        return X, np.where(np.arange(n_rows) < n_labeled, classes, np.nan)
    return X, np.where(np.arange(n_rows) < n_labeled, classes, -1).astype(int)


def peak_of(fit):
    """The peak of what numpy and Python allocate in a call."""
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in REMEDIES]
)
def test_an_estimate_covers_the_peak_of_a_fit(name, monkeypatch):
    estimates, compare = [], memory.require_memory
    monkeypatch.setattr(
        memory, "require_memory", lambda n_bytes, *words: estimates.append(n_bytes) or compare(n_bytes, *words)
    )
    estimator = getattr(kernelweave, name)()
    X, y = problem(name, 2500, 300)
    estimator.fit(X, y)  # loads and compiles what is left to the first use
    peak = peak_of(lambda: estimator.fit(X, y))
    assert peak <= 1.2 * max(estimates)  # the bound that benchmarks/memory measures on large fits


def test_the_estimate_of_a_learned_kernel_has_the_prediction_of_all_rows(monkeypatch):
    def refuse(n_bytes, *words):
        raise MemoryError(n_bytes)

    monkeypatch.setattr(memory, "require_memory", refuse)
    X, y = problem("LearnedKernelClassifier", 10_000, 300)
    learner = kernelweave.LabelAwareKernelLearner(RBF(), n_eigenvectors=0)
    with pytest.raises(MemoryError) as refused:
        kernelweave.LearnedKernelClassifier(learner).fit(X, y)
    assert refused.value.args[0] > 8 * 10_000 * 300  # the kernel between all rows and the labelled ones


@pytest.mark.parametrize("name", ["LapSVMClassifier", "RKDAClassifier", "SSMKClassifier", "HarmonicClassifier"])
def test_sparse_rows_are_estimated_by_what_they_store(name, monkeypatch):
    def refuse(n_bytes, *words):
        raise MemoryError(n_bytes)

    monkeypatch.setattr(memory, "require_memory", refuse)
    y = problem(name, 300, 30)[1]
    with pytest.raises(MemoryError) as refused:
        getattr(kernelweave, name)().fit(sparse.random(300, 100_000, 1e-4, format="csr", random_state=0), y)
    assert refused.value.args[0] < 8 * 300 * 100_000  # as dense rows


def test_a_search_asks_for_the_memory_to_label_all_rows(monkeypatch):
    X, y = problem("AutoKernelClassifier", 30_000, 50)
    monkeypatch.setattr(memory, "free_memory", lambda: 1e7)
    with pytest.raises(MemoryError, match=r"AutoKernelClassifier labels 30,000 rows, .* to predict in parts\."):
        kernelweave.AutoKernelClassifier(["RKDA"]).fit(X, y)


@pytest.mark.parametrize("name", REMEDIES)
def test_what_does_not_fit_is_refused_before_anything_large_is_formed(name, monkeypatch):
    X, y = problem(name, 30_000, 300)
    monkeypatch.setattr(memory, "free_memory", lambda: 1e7)
    message = rf"{name} (needs|joins|with n_landmarks=None) .*about .* free\. {REMEDIES[name]}"

    def fit():
        with pytest.raises(MemoryError, match=message):
            getattr(kernelweave, name)().fit(X, y)

    assert peak_of(fit) < 8 * X.nbytes  # rows are checked, and sorted to see whether they are a table


def test_memory_is_asked_for_before_it_is_taken():
    X = np.zeros((40, 3))
    bound = KernelLibrary([RBF(), RBF(2.0)]).bind(X, np.random.default_rng(0))
    require_stack_memory("Me", bound, 100, "float64", "less")
    with pytest.raises(MemoryError, match=r"Me keeps 2 kernels of 10,000,000 rows in memory, .* or less\.$"):
        require_stack_memory("Me", bound, 10_000_000, "float64", "less")
    few = KernelLibrary([Linear()]).bind(np.zeros((10, 3)), np.random.default_rng(0))
    require_stack_memory("Me", few, 10_000_000, "float64", "less", by_features=True)  # three features a row
    with pytest.raises(MemoryError):
        require_stack_memory("Me", few, 10_000_000, "float64", "less")


def test_what_and_advice_are_told():
    require_memory(1e3, "It keeps little", "Go on.")
    message = (
        r"It keeps a lot, about 931322574\.62 GB of the \S+ GB that a fit may take, 80% of the .* free\. Use less\."
    )
    with pytest.raises(MemoryError, match=message):
        require_memory(1e18, "It keeps a lot", "Use less.")


class BindingError(Exception):
    """What is raised in place of binding kernels."""


def refusal(model, X, y):
    """The words of a refusal; None where kernels would be bound."""
    try:
        model.fit(X, y)
    except MemoryError as error:
        return str(error)
    except BindingError:
        return None


@pytest.mark.parametrize(("model", "remedies"), REMEDIED)
def test_a_remedy_is_named_where_it_helps_and_nowhere_else(model, remedies, monkeypatch):
    def bind(*arguments):
        raise BindingError

    for module in (machine, lapsvm, rkda, tsvm, cg_boost):
        monkeypatch.setattr(module, "bind", bind)
    X, y = problem("MKL" if type(model).__name__ == "MKLClassifier" else "CGBoost", 20_000, 20_000)
    if type(model).__name__ in ("LapSVMClassifier", "TSVMClassifier"):
        y[5000:] = -1
    seen = set()
    for free in np.geomspace(1e7, 1e11, 41):
        monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
        words = refusal(model, X, y)
        for text, parameters in remedies.items() if words is not None else ():
            helps = refusal(clone(model).set_params(**parameters), X, y) is None
            assert bool(re.search(rf", (or )?{re.escape(text)}[,.]", words)) == helps, (free, words)
            seen.add((text, helps))
    assert {text for text, helps in seen if helps} == set(remedies)


def test_what_is_there_already_and_what_there_is_one_of_is_no_remedy():
    few = KernelLibrary([RBF()]).bind(np.zeros((40, 3)), np.random.default_rng(0))
    with pytest.raises(MemoryError, match=r"Me keeps 1 kernel of .* Use fewer rows, or less\.$"):
        require_stack_memory("Me", few, 10_000_000, "float32", "less")


def test_the_largest_of_several_sizes_decides_whether_a_remedy_is_named(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 100.0)
    assert advise([("fewer kernels", 50.0), ("float32", 79.0)], "another") == (
        "Use fewer rows, fewer kernels, float32, or another."
    )
    assert advise([("fewer kernels", 50.0), ("fewer kernels", 90.0)]) == "Use fewer rows."


def test_the_rank_of_a_recipe_is_that_of_the_bound_kernel():
    X = np.random.default_rng(0).normal(size=(60, 3))
    recipes = [
        RBF(),
        Linear(),
        Polynomial(),
        ManifoldKernel(RBF(), n_landmarks=20),
        ManifoldKernel(RBF(), ratio=0.0, n_landmarks=20),
        ManifoldKernel(RBF(), n_landmarks=40),
        ManifoldKernel(Linear(), ratio=0.0, n_landmarks=None),
        OnColumns(Linear(), [0, 1, 2]),
    ]
    for recipe in recipes:
        bound = KernelLibrary([recipe]).bind(X, np.random.default_rng(0)).kernels[0]
        assert recipe_rank(recipe, 60, 3) == bound.rank, recipe


def test_what_kernels_share_is_counted_once():
    one = binding_bytes([ManifoldKernel(RBF(), ratio=1.0)], 100_000, 5)
    two = binding_bytes([ManifoldKernel(RBF(), ratio=1.0), ManifoldKernel(RBF(), ratio=10.0)], 100_000, 5)
    other = binding_bytes([ManifoldKernel(RBF(), ratio=1.0), ManifoldKernel(RBF(2.0), ratio=1.0)], 100_000, 5)
    assert one == two
    assert other - one == 8 * 100_000 * 1000  # the features of another base
    assert binding_bytes([ClusterKernel(RBF())], 100_000, 5) > 8 * 100_000 * 100
    assert binding_bytes([ForestKernel()], 100_000, 5) > 4 * 100_000 * 500


def test_matrices_grow_with_the_square_of_the_rows_and_features_do_not():
    assert stack_bytes(10_000, [None, None], "float32", by_features=True) == (2 * 4 + 24) * 1e8
    assert stack_bytes(10_000, [100, 50], "float32", by_features=True) == (4 + 8) * 150 * 1e4
    assert stack_bytes(8000, [100, 50], "float32", by_features=True) == (4 + 8) * 150 * 8e3 + 8 * 64e6  # one matrix
    assert stack_bytes(10_000, [100, 50], "float32", by_features=False) == 4 * 150 * 1e4 + 24e8
    assert graph_bytes(2_000_000, 10, 7) < 2.1 * graph_bytes(1_000_000, 10, 7)


def test_the_limits_of_control_groups_and_of_the_process_are_known(tmp_path, monkeypatch):
    unlimited = machine_memory()
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_memory() == unlimited
    for file, text in {"max": "3000000\n", "current": "2000000\n", "stat": "file 9\ninactive_file 500000\n"}.items():
        (tmp_path / f"memory.{file}").write_text(text)
    assert machine_memory() == 3e6
    assert free_memory() == 3e6 - (2e6 - 5e5)  # what is kept of files is given back
    assert fits_machine(2.3e6)
    assert not fits_machine(2.5e6)
    for name in ("max", "current"):
        (tmp_path / f"memory.{name}").unlink()
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  7 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    assert free_memory() == 7 * 1024
    monkeypatch.setattr(memory, "_process_limit", lambda: 5000.0)
    monkeypatch.setattr(memory, "STATM", tmp_path / "none")
    assert free_memory() == 5000.0
    assert machine_memory() == 5000.0


def test_landmarks_of_many_rows_keep_to_the_working_memory():
    kernel = ManifoldKernel(RBF())
    assert [kernel.count_anchors(n) for n in (2000, 2001, 100_000, 1_000_000, 10**8)] == [2000, 1000, 1000, 100, 50]
    with config_context(working_memory=2048):
        assert kernel.count_anchors(1_000_000) == 201
    assert kernel.replace(n_landmarks=700).count_anchors(1_000_000) == 700
