"""Fits and predictions of Dask collections are those of the rows in memory, on threads and on a cluster of processes.

The rows count as many here: nothing but labelled rows, drawn ones and centres comes to memory.
"""

import operator
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import dask
import dask.array as da
import joblib
import numpy as np
import pytest
from checks.partitions import as_array, as_frame, problem
from checks.tiny_paper import PAPER
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from kernelweave import (
    RBF,
    AlignedKernelLearner,
    LabelAwareKernelLearner,
    LapSVMClassifier,
    LearnedKernelClassifier,
    LearnedKernelRegressor,
    Linear,
    OrderedSpectralKernelLearner,
    SemiSupervisedSplit,
    SSMKClassifier,
    SSMKRegressor,
    labeled_scorer,
    rbf_family,
)
from kernelweave.distributed import rows as rows_module
from kernelweave.estimators.shared import centers, partitioned, sample
from kernelweave.kernels import partitioned as partitioned_kernels
from kernelweave.papers.runner import execute, plan

KERNELS = [Linear(), *rbf_family((0.5, 2.0))]
SPECTRAL = LabelAwareKernelLearner(RBF(), n_eigenvectors=10, n_landmarks=60, random_state=0)
MODELS = {
    "SSMK": SSMKClassifier(KERNELS, C=1.0, centers="all", tol=1e-10),
    "SSMK, C by folds": SSMKClassifier(KERNELS, centers="all", tol=1e-10),
    "SSMK of numbers": SSMKRegressor(KERNELS, C=1.0, centers="all", tol=1e-10),
    "SSMK, centers drawn": SSMKClassifier(KERNELS, C=1.0, centers=200, tol=1e-10),
    "label-aware": SPECTRAL,
    "label-aware, Laplacian": clone(SPECTRAL).set_params(basis="laplacian", extra_kernels=[Linear()]),
    "aligned": AlignedKernelLearner(KERNELS),
    "ordered": OrderedSpectralKernelLearner(RBF(), n_eigenvectors=10, n_landmarks=60),
    "learned kernel": LearnedKernelClassifier(SPECTRAL, tol=1e-10),
    "learned kernel of numbers": LearnedKernelRegressor([SPECTRAL, AlignedKernelLearner(KERNELS)], tol=1e-10),
}
X, y, numbers = problem(1000, 60)


@pytest.fixture(autouse=True)
def rows_are_many(monkeypatch):
    monkeypatch.setattr(centers, "MAX_AUTO_CENTERS", 500)
    monkeypatch.setattr(partitioned, "MAX_BOUND_ROWS", 500)
    monkeypatch.setattr(sample, "MAX_ORDERED_ROWS", 500)
    monkeypatch.setattr(partitioned_kernels, "MAX_BOUND_ROWS", 500)


def target_of(name):
    return numbers if "numbers" in name else y


def in_memory(name, dtype=np.float64):
    return clone(MODELS[name]).set_params(random_state=0).fit(X.astype(dtype), target_of(name))


def on_dask(name, n_partitions, dtype=np.float64, **options):
    rows, labels = (
        as_array(X.astype(dtype), n_partitions, **options),
        as_array(target_of(name), n_partitions, **options),
    )
    return clone(MODELS[name]).set_params(random_state=0).fit(rows, labels)


def assert_same(model, expected, rtol=1e-9):
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=rtol)
    assert model.status_.name == expected.status_.name == "CONVERGED"
    if hasattr(model, "transform"):
        kernels = [centered_kernel(each) for each in (model, expected)]
        np.testing.assert_allclose(kernels[0], kernels[1], atol=1e-6 * np.abs(kernels[1]).max())
    elif expected.transduction_.dtype.kind == "f":
        np.testing.assert_allclose(model.transduction_.compute(), expected.transduction_, atol=1e-5)
    else:
        np.testing.assert_array_equal(model.transduction_.compute(), expected.transduction_)
    if hasattr(model, "expansion_") and isinstance(model, SSMKClassifier):
        found, known = ({int(i) for g in each.expansion_.groups for i in g.centers} for each in (model, expected))
        assert len(found ^ known) <= 2  # ties


def centered_kernel(model):
    """Without the mean: the vectors of two classes differ by a constant, so that they may share their weight anyhow."""
    Z = model.transform(X[:50])
    return (Z - Z.mean(axis=0)) @ (Z - Z.mean(axis=0)).T


@pytest.mark.parametrize("name", MODELS)
def test_threads_give_the_fit_in_memory(name):
    assert_same(on_dask(name, 7), in_memory(name))


@pytest.mark.parametrize("n_partitions", [1, 64])
def test_partitions_make_no_difference(n_partitions):
    for name in ("SSMK", "label-aware"):
        assert_same(on_dask(name, n_partitions), in_memory(name))


def test_partitions_of_unknown_sizes_make_no_difference():
    for name in ("SSMK", "learned kernel"):
        assert_same(on_dask(name, 7, known=False), in_memory(name))


def test_arrays_on_the_disk_give_the_fit_in_memory(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    rows = da.from_array(np.load(tmp_path / "rows.npy", mmap_mode="r"), chunks=(300, -1))
    model = clone(MODELS["SSMK"]).set_params(random_state=0).fit(rows, da.from_array(y, chunks=300))
    assert_same(model, in_memory("SSMK"))


def test_frames_give_the_fit_of_arrays():
    frame = as_frame(X, np.where(y < 0, None, np.where(y == 0, "no", "yes")), 7)
    features = frame[["x0", "x1", "x2", "x3"]]
    model = clone(MODELS["SSMK"]).set_params(random_state=0).fit(features, frame["y"])
    expected = in_memory("SSMK")
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    np.testing.assert_array_equal(model.transduction_.compute() == "yes", expected.transduction_ == 1)
    assert model.predict(features).compute().tolist() == model.predict(features.compute()).tolist()


def test_single_precision_agrees_to_its_rounding():
    for name in ("SSMK", "learned kernel"):
        model, expected = on_dask(name, 7, np.float32), in_memory(name, np.float32)
        np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-5)


def test_what_is_lazy_stays_behind_when_a_model_is_copied():
    model = pickle.loads(pickle.dumps(on_dask("SSMK", 7)))
    assert not hasattr(model, "transduction_")
    np.testing.assert_array_equal(model.predict(X), in_memory("SSMK").predict(X))


@pytest.mark.parametrize("name", ["SSMK", "label-aware"])
def test_bytes_that_come_back_do_not_grow_with_the_rows(name, monkeypatch):
    def count_bytes(n_rows):
        n_bytes, compute = [], rows_module.compute
        monkeypatch.setattr(rows_module, "compute", lambda parts: _weigh(compute(parts), n_bytes))
        rows, labels, _ = problem(n_rows, 60)
        model = clone(MODELS[name]).set_params(random_state=0, **({"tol": 1e-2} if name == "SSMK" else {}))
        model.fit(as_array(rows, 7), as_array(labels, 7))
        monkeypatch.setattr(rows_module, "compute", compute)
        return sum(n_bytes) / getattr(model, "n_iter_", 1)

    monkeypatch.setattr(partitioned_kernels, "MAX_BEST", 100)
    few, many = count_bytes(6000), count_bytes(24_000)
    assert many < 1.5 * few


def _weigh(values, n_bytes):
    n_bytes.append(len(pickle.dumps(values)))
    return values


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": "1.5GB", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, **options) as local, distributed.Client(local) as client:
        yield client


def test_processes_give_the_fit_in_memory(cluster):
    model = on_dask("SSMK", 7)
    assert_same(model, in_memory("SSMK"))
    np.testing.assert_array_equal(model.predict(as_array(X, 7)).compute(), model.predict(X))


def _are_shared(block, first, kernels, rows):
    return [all(kernel is rows for kernel in kernels)]


def test_what_blocks_are_told_shares_its_parts_on_every_worker(cluster):
    rows, blocks = np.zeros(3), [dask.delayed(np.zeros)(2) for _ in range(8)]
    rows_of_blocks = rows_module.PartitionedRows(blocks, [2] * 8, None, float)
    told = rows_of_blocks.reduce(_are_shared, operator.add, (rows, rows), rows)
    assert told == [True] * 8


@pytest.mark.slow
@pytest.mark.parametrize("n_partitions", [1, 7, 64])
@pytest.mark.parametrize("name", MODELS)
def test_processes_give_every_fit_in_memory(name, n_partitions, cluster):
    for known in (True, False):
        model, expected = on_dask(name, n_partitions, known=known), in_memory(name)
        assert_same(model, expected)
        answer = "predict" if hasattr(model, "predict") else "transform"
        there = getattr(model, answer)(as_array(X, n_partitions, known=known)).compute()
        np.testing.assert_allclose(there, getattr(model, answer)(X), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_model_selection_runs_on_the_cluster_through_joblib(cluster):
    grid = GridSearchCV(LapSVMClassifier(), {"C": [0.1, 10.0]}, cv=SemiSupervisedSplit(2), scoring=labeled_scorer())
    with joblib.parallel_config(backend="dask"):
        there = clone(grid).set_params(n_jobs=2).fit(X[:150], np.where(np.arange(150) % 3, -1, X[:150, 0] > 0))
    here = clone(grid).fit(X[:150], np.where(np.arange(150) % 3, -1, X[:150, 0] > 0))
    assert there.best_params_ == here.best_params_


@pytest.mark.slow
def test_paper_runs_are_computed_on_the_cluster_through_joblib(cluster, tmp_path):
    with joblib.parallel_config(backend="dask"):
        there = execute(plan([PAPER]), tmp_path / "there", n_jobs=2)
    here = execute(plan([PAPER]), tmp_path / "here")
    assert {str(each["values"]) for each in there} == {str(each["values"]) for each in here}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SSMK", "label-aware"])
def test_a_killed_worker_changes_nothing(name, cluster):
    rows, labels = as_array(X, 64), as_array(y, 64)
    victims = list(cluster.run(os.getpid).values())
    killer = threading.Timer(0.5, os.kill, (victims[0], signal.SIGKILL))
    killer.start()
    model = clone(MODELS[name]).set_params(random_state=0).fit(rows, labels)
    killer.join()
    assert_same(model, in_memory(name))


LOST = """
import sys, numpy as np, dask.array as da
from distributed import Client
import dask
dask.config.set({"distributed.comm.timeouts.connect": "3s"})
from kernelweave import SSMKClassifier, RBF
from kernelweave.estimators.shared import centers
centers.MAX_AUTO_CENTERS = 500
client = Client(sys.argv[1])
X = np.random.default_rng(0).normal(size=(1000, 3))
y = np.where(np.arange(1000) < 40, X[:, 0] > 0, -1)
def lose(state):
    print("first round", flush=True)
    sys.stdin.readline()
try:
    model = SSMKClassifier([RBF()], C=1.0, centers="all", callback=lose)
    model.fit(da.from_array(X, chunks=200), da.from_array(y, chunks=200))
except ConnectionError as error:
    print("told:", error, flush=True)
"""


@pytest.mark.slow
def test_a_lost_scheduler_is_told_in_bounded_time():
    options = {"stdout": subprocess.PIPE, "stdin": subprocess.PIPE, "text": True}
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"],
        stderr=subprocess.PIPE,
        text=True,
    )
    address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at" in line)
    threading.Thread(target=scheduler.stderr.read, daemon=True).start()
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard", "--death-timeout", "10"],
        stderr=subprocess.DEVNULL,
    )
    fit = subprocess.Popen([sys.executable, "-c", LOST, address], **options)
    try:
        assert fit.stdout.readline().strip() == "first round"
        scheduler.kill()
        started = time.monotonic()
        out, _ = fit.communicate("\n", timeout=120)
        assert "told: The Dask cluster was lost" in out
        assert time.monotonic() - started < 110
    finally:
        for process in (fit, worker, scheduler):
            process.kill()
