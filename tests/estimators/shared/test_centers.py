import numpy as np
import pytest
from oracles.reference import full_lp

from kernelweave import RBF, CGBoostClassifier, CGBoostRegressor, KernelLibrary, Linear, SSMKClassifier
from kernelweave.estimators.shared import centers as module
from kernelweave.estimators.shared.centers import choose_centers
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition
from kernelweave.solvers.margin import classification_rows

N, N_LABELED = 40, 12


@pytest.fixture(scope="module", name="X")
def made_sample():
    X = np.random.default_rng(0).normal(size=(N, 3))
    X.setflags(write=False)
    return X


@pytest.fixture
def sample(X):
    y = np.where(np.arange(N) % 10 < 3, (X[:, 0] > 0) * 1.0, np.nan)  # 12 labelled rows
    y[:2] = 0, 1
    return read_as_given(Rows(X), partition(y))


def chosen(centers, sample, seed=0):
    found = choose_centers(centers, sample, np.random.default_rng(seed))
    return found.sample, found.sample.kept[found.is_center], found.scope


def test_all_rows_are_centers(sample):
    for centers in ("auto", "all"):
        kept, rows, scope = chosen(centers, sample)
        assert kept is sample
        np.testing.assert_array_equal(rows, np.arange(N))
        assert scope == "40 centres"


def test_labeled_rows_alone(sample):
    kept, rows, scope = chosen("labeled", sample)
    np.testing.assert_array_equal(rows, sample.partition.labeled)
    assert len(kept.kept) == N_LABELED
    assert scope == "12 centres of 40 rows"


@pytest.mark.parametrize("n_centers", [1, 5, 12, 20, 40, 1000])
def test_a_number_draws_labeled_rows_first(n_centers, sample):
    kept, rows, _ = chosen(n_centers, sample)
    assert len(rows) == min(n_centers, N)
    labeled = sample.partition.labeled
    assert np.isin(rows, labeled).all() if n_centers <= N_LABELED else np.isin(labeled, rows).all()
    assert np.isin(labeled, kept.kept).all()  # their margins stay
    np.testing.assert_array_equal(rows, chosen(n_centers, sample)[1])


def test_auto_draws_where_there_are_many_rows(sample, monkeypatch):
    monkeypatch.setattr(module, "MAX_AUTO_CENTERS", 15)
    _, rows, scope = chosen("auto", sample)
    np.testing.assert_array_equal(rows, chosen(15, sample)[1])
    assert scope == "15 centres of 40 rows"
    assert len(chosen("all", sample)[1]) == N


@pytest.mark.parametrize("rows", [[7, 3, 3, 39], (0,), np.array([5, 6], dtype=np.uint8), range(4)])
def test_row_numbers_name_the_centers(rows, sample):
    kept, found, scope = chosen(rows, sample)
    np.testing.assert_array_equal(found, np.unique(list(rows)))
    np.testing.assert_array_equal(kept.kept, np.union1d(list(rows), sample.partition.labeled))
    assert scope.startswith("1 centre of" if len(found) == 1 else f"{len(found)} centres of")


def test_a_mask_names_the_centers(sample):
    mask = np.arange(N) % 7 == 0
    np.testing.assert_array_equal(chosen(mask, sample)[1], np.flatnonzero(mask))


def test_row_numbers_are_those_of_the_data_as_given(sample):
    weighted = sample.restrict(np.arange(N) != 3)  # row 3 has weight zero
    _, rows, _ = chosen([3, 4, 5], weighted)
    np.testing.assert_array_equal(rows, [4, 5])
    with pytest.raises(ValueError, match=r"centers=\[3\] leaves no row of positive weight"):
        chosen([3], weighted)


WRONG = [
    "some",
    0,
    -1,
    2.5,
    True,
    None,
    [],
    [40],
    [-1],
    [0.5],
    ["a"],
    np.zeros((2, 2), dtype=int),
    np.ones(39, dtype=bool),
    [[0, 1], [2]],
]


@pytest.mark.parametrize("centers", WRONG, ids=repr)
def test_other_centers_are_refused_with_a_sentence(centers, sample):
    with pytest.raises(ValueError, match=r"(?s)centers=.*; expected \"auto\", \"all\", \"labeled\", a number"):
        chosen(centers, sample)


def test_an_empty_mask_is_refused(sample):
    with pytest.raises(ValueError, match="leaves no row of positive weight that may be a centre"):
        chosen(np.zeros(N, dtype=bool), sample)


@pytest.mark.parametrize("centers", [[0, 5, 9, 30], 8])
def test_a_labeled_row_that_is_no_center_still_has_its_margin(centers, X):
    y = (X[:, 0] > 0).astype(int)
    kernels = [RBF(0.5), Linear()]
    model = CGBoostClassifier(kernels, C=10.0, centers=centers, column_scale=None, tol=1e-8, random_state=0).fit(X, y)
    bound = KernelLibrary(kernels).bind(X, np.random.default_rng(0))
    columns = np.concatenate([model.candidates_, N + model.candidates_])
    best = full_lp(bound.columns(columns), classification_rows(2.0 * y - 1, np.full(N, 10.0))).objective
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert len(model.candidates_) == len(columns) / 2 == (8 if centers == 8 else 4)
    for group in model.expansion_.groups:
        assert np.isin(group.centers, model.candidates_).all()


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("pricing", ["stratified", "full"])
def test_no_column_outside_the_centers_is_used(penalty, pricing, X):
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = CGBoostClassifier(penalty=penalty, pricing=pricing, centers=[1, 2, 3]).fit(X, y)
    assert {int(i) for group in model.expansion_.groups for i in group.centers} <= {1, 2, 3}
    assert model.certificate_.relative <= (1e-6 if penalty == "l1" else 0.1)
    assert "3 centres of 40 rows" in model.certificate_.scope


def test_the_rkhs_norm_needs_a_center_at_every_row(X):
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match='penalty="rkhs" needs a centre at every labelled row'):
        CGBoostClassifier(penalty="rkhs", centers=5).fit(X, y)
    CGBoostClassifier(penalty="rkhs", centers="labeled").fit(X, y)


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """The same single-precision rows in memory and mapped from a file, read-only."""
    rows = np.random.default_rng(1).normal(size=(120, 5)).astype(np.float32)
    path = tmp_path_factory.mktemp("centers") / "rows.bin"
    rows.tofile(path)
    return rows, np.memmap(path, dtype=np.float32, mode="r", shape=rows.shape)


@pytest.mark.parametrize("centers", ["all", 50])
@pytest.mark.parametrize("kind", [SSMKClassifier, CGBoostClassifier, CGBoostRegressor])
def test_a_memory_mapped_array_gives_the_same_model(kind, centers, mapped):
    rows, mapped_rows = mapped
    y = (rows[:, 0] > 0).astype(float)
    if kind is SSMKClassifier:
        y = np.where(np.arange(120) < 30, y, np.nan)
    in_memory, from_file = (kind(centers=centers, random_state=0).fit(X, y) for X in mapped)
    values = "predict" if kind is CGBoostRegressor else "decision_function"
    np.testing.assert_array_equal(getattr(in_memory, values)(rows), getattr(from_file, values)(mapped_rows))
    assert in_memory.objective_ == from_file.objective_
