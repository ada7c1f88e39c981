import numpy as np
import pandas as pd
import polars as pl
import pytest
from checks.rounding import assert_same_but_for_rounding
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import cosine_similarity, linear_kernel, rbf_kernel, sigmoid_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelweave import (
    RBF,
    ForestKernel,
    FromCallable,
    KernelLibrary,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    Normalized,
    OnColumns,
    Polynomial,
    Precomputed,
    Preprocessed,
    Sigmoid,
)
from kernelweave.kernels import wrappers

WHOLE = slice(None)
CONTAINERS = [np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.csr_array]


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(30, 5))


@pytest.fixture(name="X_new")
def new_sample():
    return np.random.default_rng(1).normal(size=(6, 5))


def bound_to(kernel, X, sample_weight=None, seed=0):
    return kernel.bind(X, np.random.default_rng(seed), sample_weight)


def whole(kernel, X, sample_weight=None, seed=0):
    return bound_to(kernel, X, sample_weight, seed).block(WHOLE, WHOLE)


# Normalized


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("degree", [1, 2, 5])
def test_a_normalized_power_is_the_power_of_the_cosine(degree, container, X, X_new):
    bound = bound_to(Normalized(Polynomial(degree, coef0=0.0)), container(X))
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), cosine_similarity(X) ** degree, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        bound.against(container(X_new)), cosine_similarity(X_new, X) ** degree, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("size", [1e-5, 1e4])
def test_the_cosine_has_no_scale_in_single_precision_either(size, X):
    found = whole(Normalized(Polynomial(5, coef0=0.0)), (size * X).astype(np.float32))
    np.testing.assert_allclose(found, cosine_similarity(X) ** 5, rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("error")
def test_a_row_without_length_is_at_right_angles_to_all(X):
    X[3] = 0.0
    bound = bound_to(Normalized(Linear()), X)
    assert not bound.block(np.array([3]), WHOLE).any()
    assert bound.diag()[3] == 0
    assert not bound.against(np.zeros((1, 5))).any()
    assert bound.diag_against(np.zeros((1, 5))) == [0.0]
    assert not bound.restrict(np.array([3, 4])).against(X[:2])[:, 0].any()


def test_a_kernel_with_a_negative_diagonal_cannot_be_normalized(X, X_new):
    message = r"Sigmoid\(coef0=-2.0\) cannot be normalised: k\(x, x\) is negative for \d+ rows \(smallest -"
    with pytest.raises(ValueError, match=message):
        bound_to(Normalized(Sigmoid(coef0=-2.0)), X)
    bound = bound_to(Normalized(Sigmoid(coef0=-2.0)), 10 * X)
    with pytest.raises(ValueError, match=message):
        bound.against(0.1 * X_new)


# Preprocessed


def test_a_transformer_is_fitted_on_the_bound_rows_only(X, X_new):
    scaler = StandardScaler().fit(X)
    bound = bound_to(Preprocessed(StandardScaler(), RBF(0.2)), X)
    expected = rbf_kernel(scaler.transform(X_new), scaler.transform(X), gamma=0.2)
    np.testing.assert_allclose(bound.against(X_new), expected, rtol=1e-10)
    np.testing.assert_allclose(bound.restrict(np.array([4, 2])).against(X_new), expected[:, [4, 2]], rtol=1e-10)


class Witness(TransformerMixin, BaseEstimator):
    """Keeps what it was fitted with."""

    def fit(self, X, *others):
        self.seen_ = (X, *others)
        return self

    def transform(self, X):
        return X


def test_a_transformer_never_sees_y_and_the_recipe_is_left_alone(X):
    recipe = Preprocessed(Witness(), Linear())
    bound = bound_to(recipe, X)
    assert len(bound.transformer.seen_) == 1
    assert not hasattr(recipe.transformer, "seen_")


def test_a_transformer_that_is_changed_afterwards_leaves_the_recipe_alone(X):
    given = StandardScaler()
    recipe = Preprocessed(given, Linear())
    changed = recipe.replace(transformer=given, kernel=RBF())
    given.with_mean = False
    assert recipe == Preprocessed(StandardScaler(), Linear())
    assert changed == Preprocessed(StandardScaler(), RBF())
    assert clone(recipe) is recipe
    assert clone(MKLClassifier(recipe)).kernels is recipe
    assert recipe.get_params()["transformer"] is recipe.transformer
    np.testing.assert_array_equal(whole(recipe, X), whole(Preprocessed(StandardScaler(), Linear()), X))


@pytest.mark.parametrize("wrong", [StandardScaler, "passthrough", None], ids=str)
def test_what_is_no_transformer_is_refused_with_the_remedy(wrong):
    with pytest.raises(
        TypeError, match=r"Preprocessed takes a scikit-learn transformer such as StandardScaler\(\); got"
    ):
        Preprocessed(wrong, RBF())


@pytest.mark.parametrize(
    "transformer",
    [
        RBFSampler(n_components=3),
        PCA(2, svd_solver="randomized"),
        make_pipeline(StandardScaler(), RBFSampler(n_components=3)),
        ColumnTransformer([("one", RBFSampler(n_components=3), [0, 1]), ("two", RBFSampler(n_components=2), [2])]),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_random_transformers_at_any_depth_draw_from_the_generator(transformer, X):
    kernel = Preprocessed(transformer, Linear())
    np.testing.assert_array_equal(whole(kernel, X, seed=3), whole(kernel, X, seed=3))


def test_random_transformers_differ_between_seeds_unless_they_are_seeded(X):
    free, fixed = RBFSampler(n_components=3), RBFSampler(n_components=3, random_state=0)
    assert not np.allclose(
        whole(Preprocessed(free, Linear()), X, seed=1), whole(Preprocessed(free, Linear()), X, seed=2)
    )
    fixed = [whole(Preprocessed(fixed, Linear()), X, seed=seed) for seed in (1, 2)]
    np.testing.assert_array_equal(*fixed)


def test_what_a_transformer_gives_may_be_sparse(X):
    words = np.random.default_rng(2).integers(0, 3, size=(30, 2))
    same = (words[:, None] == words[None]).sum(axis=2)
    for encoder in (OneHotEncoder(handle_unknown="ignore"), OneHotEncoder(sparse_output=False, dtype=int)):
        bound = bound_to(Preprocessed(encoder, Linear()), words)
        np.testing.assert_allclose(bound.block(WHOLE, WHOLE), same)
        np.testing.assert_allclose(bound.against(words[:4]), same[:4])


def test_what_a_transformer_gives_may_be_a_frame(X):
    scaler = StandardScaler().set_output(transform="pandas")
    np.testing.assert_allclose(
        whole(Preprocessed(scaler, Linear()), X), linear_kernel(StandardScaler().fit_transform(X))
    )


class Namer(TransformerMixin, BaseEstimator):
    def fit(self, X):
        return self

    def transform(self, X):
        return np.full(X.shape, "high")


def test_what_a_transformer_gives_must_be_numbers(X):
    with pytest.raises(
        ValueError, match=r"Namer\(\) of Preprocessed gave shape \(30, 5\) and type <U4; a kernel needs"
    ):
        bound_to(Preprocessed(Namer(), Linear()), X)


def test_columns_inside_a_transformer_are_those_of_its_output(X):
    X[:, 0] = 1.0
    kernel = Preprocessed(VarianceThreshold(), OnColumns(Linear(), [0]))
    np.testing.assert_allclose(whole(kernel.resolve(list("abcde"), 5), X), linear_kernel(X[:, [1]]))


def test_a_transformer_may_fill_gaps(X):
    X[4, 1] = np.nan
    kernel = Preprocessed(SimpleImputer(), RBF(0.5))
    assert kernel.allows_missing
    assert OnColumns(kernel, [0, 1]).allows_missing
    assert not Preprocessed(PCA(), RBF()).allows_missing
    np.testing.assert_allclose(whole(kernel, X), rbf_kernel(SimpleImputer().fit_transform(X), gamma=0.5), rtol=1e-10)
    with pytest.raises(ValueError, match="found missing values"):
        bound_to(Preprocessed(StandardScaler(), RBF()), X)


# OnColumns


NAMES = ["gene_1", "gene_2", "age", "gene_10", "size"]


@pytest.mark.parametrize(
    "columns, positions",
    [
        ("age", [2]),
        (["size", "age"], [4, 2]),
        ("gene_*", [0, 1, 3]),
        ("gene_1*", [0, 3]),
        ("*", [0, 1, 2, 3, 4]),
        (["age", "gene_*"], [2, 0, 1, 3]),
        (["gene_*", "gene_1", "s*"], [0, 1, 3, 4]),
        (["gene_*", "age", 4], [0, 1, 3, 2, 4]),
        (1, [1]),
        ([3, 0], [3, 0]),
        (np.array([3, 0]), [3, 0]),
        ([-1, -5], [4, 0]),
        ([4, -1, 4], [4]),
        (slice(1, 3), [1, 2]),
        (slice(-2, None), [3, 4]),
        (slice(None, None, 2), [0, 2, 4]),
    ],
)
@pytest.mark.parametrize("container", CONTAINERS)
def test_columns_are_named_by_name_pattern_position_or_slice(columns, positions, container, X, X_new):
    kernel = OnColumns(RBF(0.3), columns).resolve(NAMES, 5)
    bound = bound_to(kernel, container(X))
    expected = rbf_kernel(X_new[:, positions], X[:, positions], gamma=0.3)
    np.testing.assert_allclose(bound.against(container(X_new)), expected, rtol=1e-10)
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), rbf_kernel(X[:, positions], gamma=0.3), rtol=1e-10)
    np.testing.assert_allclose(bound.diag_against(container(X_new)), 1.0)


def test_unknown_names_are_listed_with_the_remedy():
    names = [f"gene_{i}" for i in range(1, 21)]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        OnColumns(RBF(), ["gene_1", "gene_77"]).resolve(names, 20)
    assert str(caught.value) == (
        "OnColumns names the columns ['gene_77'] which X does not have; it has 'gene_1', 'gene_2', ... (20 in all). "
        "Pass the frame the estimator was built for, or name columns by position. Did you mean 'gene_7' or 'gene_17'?"
    )


@pytest.mark.parametrize("wrong", ["height", "prot_*", ["age", "height"], [5], [-6], [0.0]])
def test_a_column_that_is_not_there_is_refused(wrong):
    with pytest.raises(ValueError, match="which X does not have; it has 'gene_1', 'gene_2'"):
        OnColumns(RBF(), wrong).resolve(NAMES, 5)


def test_names_need_a_frame(X):
    with pytest.raises(ValueError, match=r"it has 5 columns without names\. Pass a frame with these columns to fit"):
        KernelLibrary([OnColumns(RBF(), "age")]).bind(X, np.random.default_rng(0))


@pytest.mark.parametrize("nothing", [[], slice(3, 3), slice(9, None)])
def test_no_column_at_all_is_refused(nothing, X):
    with pytest.raises(ValueError, match=r"names no column of X: got .* X has 5 columns"):
        bound_to(OnColumns(RBF(), nothing), X)


@pytest.mark.parametrize("mask", [[True, False, True, False, False], np.arange(5) > 2])
def test_a_mask_is_not_mistaken_for_positions(mask):
    with pytest.raises(ValueError, match=r"got a mask as columns; pass the positions np\.flatnonzero"):
        OnColumns(RBF(), mask)


def test_an_unknown_meaning_of_missing_is_refused():
    with pytest.raises(ValueError, match='OnColumns got missing=\'zero\'; expected "error" or "center"'):
        OnColumns(RBF(), [0], missing="zero")


def test_the_source_is_named_after_the_columns_unless_it_has_a_name():
    kernel = OnColumns(RBF(), "gene_*")
    assert kernel.source == Normalized(2.0 * kernel).source == kernel.resolve(NAMES, 5).source == "gene_*"
    assert kernel.replace(columns=["age", "size"]).source == "age, size"
    assert OnColumns(RBF(), [0, 1, 2, 3]).source == "0, 1, 2, … (4)"
    assert OnColumns(RBF(), slice(1, None, 2)).source == "columns 1::2"
    assert OnColumns(RBF(), [0], source="clinic").replace(columns=[1]).source == "clinic"
    assert (kernel + RBF()).source == RBF().source == "all columns"


def test_names_reach_recipes_at_any_depth(X):
    inner = OnColumns(Linear(), "age")
    kernel = Normalized(2.0 * (inner + OnColumns(OnColumns(Linear(), "gene_10"), "gene_*"))).resolve(NAMES, 5)
    np.testing.assert_allclose(whole(kernel, X), cosine_similarity(X[:, [2, 3]]), rtol=1e-10)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_prefix_picks_what_a_column_transformer_made_of_a_frame(frame):
    table = frame({"age": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]})
    encoder = ColumnTransformer(
        [("kind", OneHotEncoder(sparse_output=False), ["kind"]), ("age", "passthrough", ["age"])]
    ).set_output(transform="pandas")
    numbers = encoder.fit_transform(table)
    library = KernelLibrary([OnColumns(Linear(), "kind__*")])
    bound = library.bind(numbers.to_numpy(), np.random.default_rng(0), feature_names=list(numbers.columns))
    np.testing.assert_array_equal(bound.columns(np.arange(3)), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


# OnColumns(missing="center")

PSD_KERNELS = [
    Linear(),
    Polynomial(),
    RBF(),
    Normalized(Linear()),
    Linear() + RBF(),
    Preprocessed(StandardScaler(), RBF()),
    FromCallable(rbf_kernel),
    ManifoldKernel(RBF(), 4),
    ForestKernel(20),
]
MISSING, PRESENT = np.array([2, 7, 8, 20]), np.setdiff1d(np.arange(30), [2, 7, 8, 20])


@pytest.fixture(name="gaps")
def sample_with_missing_rows(X):
    X[MISSING, :3] = np.nan
    return X


def centered(kernel, columns=slice(0, 3)):
    return OnColumns(kernel, columns, missing="center")


def at_center(K, share):
    """The kernel matrix in which every missing row is the average of the present rows, in feature space."""
    A = np.zeros((30, len(PRESENT)))
    A[PRESENT, np.arange(len(PRESENT))] = 1.0
    A[MISSING] = share
    return A @ K @ A.T


@pytest.mark.parametrize("kernel", [*PSD_KERNELS, Sigmoid()], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_missing_row_is_the_weighted_mean_in_feature_space(kernel, weighted, gaps):
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=30) if weighted else None
    share = np.ones(len(PRESENT)) if weight is None else weight[PRESENT]
    inner = bound_to(kernel, gaps[PRESENT, :3], None if weight is None else share)
    expected = at_center(inner.block(WHOLE, WHOLE), share / share.sum())
    bound = bound_to(centered(kernel), gaps, weight)
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.diag(), np.diag(expected), rtol=1e-10, atol=1e-12)
    rows, cols = np.array([2, 0, 7, 29]), np.array([8, 9, 2])
    np.testing.assert_allclose(bound.block(rows, cols), expected[np.ix_(rows, cols)], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(bound.block(MISSING, MISSING), expected[np.ix_(MISSING, MISSING)], rtol=1e-10)


@pytest.mark.parametrize("kernel", PSD_KERNELS, ids=repr)
def test_missing_rows_keep_the_matrix_positive_semi_definite(kernel, gaps):
    values = np.linalg.eigvalsh(whole(centered(kernel), gaps))
    assert values[0] >= -1e-12 * values[-1]


@pytest.mark.parametrize("kernel", PSD_KERNELS, ids=repr)
def test_new_rows_may_be_missing_too(kernel, gaps, X_new):
    X_new[[1, 4], :3] = np.nan
    bound = bound_to(centered(kernel), gaps)
    joined = np.vstack([gaps, X_new])
    inner = bound_to(kernel, gaps[PRESENT, :3])
    K = inner.against(joined[[*PRESENT, 30, 32, 33, 35], :3])  # present rows, then present new rows
    places, average = np.full(36, -1), K[: len(PRESENT)].mean(axis=0)
    places[[*PRESENT, 30, 32, 33, 35]] = np.arange(len(K))
    to_present = np.where(places[30:, None] >= 0, K[places[30:]], average)
    expected = np.empty((6, 30))
    expected[:, PRESENT], expected[:, MISSING] = to_present, to_present.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(bound.against(X_new), expected, rtol=1e-10, atol=1e-12)
    center = expected[1, MISSING[0]]
    own = np.where(np.isin(np.arange(6), [1, 4]), center, 0.0)
    own[[0, 2, 3, 5]] = inner.diag_against(X_new[[0, 2, 3, 5], :3])
    np.testing.assert_allclose(bound.diag_against(X_new), own, rtol=1e-10)


@pytest.mark.parametrize("kernel", PSD_KERNELS, ids=repr)
def test_restricting_keeps_the_centre(kernel, gaps, X_new):
    X_new[0, :3] = np.nan
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=30)
    bound, rows = bound_to(centered(kernel), gaps, weight), np.array([7, 1, 29, 2])
    small = bound.restrict(rows)
    np.testing.assert_allclose(small.against(X_new), bound.against(X_new, rows), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(small.block(WHOLE, WHOLE), bound.block(rows, rows), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(small.diag(), bound.diag()[rows], rtol=1e-10)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_missing_row_of_centred_features_has_no_length(sign, gaps):
    gaps[PRESENT, :3] -= gaps[PRESENT, :3].mean(axis=0)
    bound = bound_to(Normalized(centered(Linear())), sign * gaps)
    assert not bound.diag()[MISSING].any()
    assert not bound.block(MISSING, WHOLE).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_rows_present_is_the_plain_kernel(dtype, X):
    X = X.astype(dtype)
    digits = np.finfo(dtype).precision - 1  # values of at most 1, of squared distances of a few units
    assert_same_but_for_rounding(whole(centered(RBF()), X), whole(OnColumns(RBF(), slice(0, 3)), X), 10.0**-digits)
    np.testing.assert_allclose(
        whole(centered(RBF(0.5)), sparse.csr_array(X)), rbf_kernel(X[:, :3], gamma=0.5), rtol=1e-4
    )


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_rows_may_be_missing(container, gaps):
    bound, dense = bound_to(centered(RBF()), container(gaps)), bound_to(centered(RBF()), gaps)
    np.testing.assert_allclose(bound.block(WHOLE, WHOLE), dense.block(WHOLE, WHOLE), rtol=1e-8)
    np.testing.assert_allclose(bound.against(container(gaps)), dense.against(gaps), rtol=1e-8)
    np.testing.assert_allclose(bound.diag_against(container(gaps)), dense.diag_against(gaps), rtol=1e-8)


def test_partly_missing_rows_are_refused(gaps, X_new):
    with pytest.raises(ValueError, match=r"only some of its 4 columns are NaN \(4 rows, the first is row 2\)"):
        bound_to(centered(RBF(), slice(0, 4)), gaps)
    X_new[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"\(1 rows, the first is row 3\). Impute these values first"):
        bound_to(centered(RBF()), gaps).against(X_new)


def test_a_source_that_no_row_has_is_refused(X):
    X[:, 3:] = np.nan
    with pytest.raises(ValueError, match="No row has values in the columns 3, 4 of OnColumns; drop this kernel"):
        bound_to(centered(RBF(), [3, 4]), X)


def test_a_missing_row_needs_a_meaning(gaps):
    with pytest.raises(ValueError, match="found missing values"):
        bound_to(OnColumns(RBF(), slice(0, 3)), gaps)


def test_a_row_may_lack_its_matrix():
    Z = np.random.default_rng(4).normal(size=(6, 2))
    numbers = np.array([[0.0], [np.nan], [2.0], [5.0]])
    found = whole(OnColumns(Precomputed(Z @ Z.T), [0], missing="center"), numbers)
    points = np.array([Z[0], Z[[0, 2, 5]].mean(axis=0), Z[2], Z[5]])
    np.testing.assert_allclose(found, points @ points.T, rtol=1e-10, atol=1e-14)


def test_the_centre_of_many_rows_is_a_seeded_average_of_some(monkeypatch):
    monkeypatch.setattr(wrappers, "MAX_CENTER_ROWS", 200)
    X = np.random.default_rng(5).normal(loc=3.0, size=(1000, 2))
    weight = np.random.default_rng(6).uniform(0.0, 1.0, size=1000)
    weight[:10], weight[10:20] = 0.0, 20.0
    X[-1] = np.nan
    kernel = OnColumns(Linear(), WHOLE, missing="center")
    bound = bound_to(kernel, X, weight)
    center = np.average(X[:-1], axis=0, weights=weight[:-1])
    # The average of 200 draws of standard deviation 1 is within 5 / sqrt(200) of the mean.
    assert abs(bound.block(np.array([999]), np.array([999]))[0, 0] - center @ center) < 2 * 5 * 3 * np.sqrt(2 / 200)
    drawn = np.zeros(999)
    drawn[bound.center] = bound.center_weight
    assert drawn.sum() == pytest.approx(1.0)
    assert not drawn[:10].any()
    expected = weight[:-1] / weight[:-1].sum()
    assert np.all(np.abs(drawn - expected) <= 1 / 200)  # no row is drawn more or less than its share, rounded
    assert_same_but_for_rounding(whole(kernel, X, weight)[-1], bound.block(np.array([999]), WHOLE)[0])
    values = np.linalg.eigvalsh(bound.block(np.arange(900, 1000), np.arange(900, 1000)))
    assert values[0] >= -1e-12 * values[-1]


def test_a_bad_diagonal_is_not_hidden_by_a_centre():
    X = np.array([[1.0], [2.0], [np.nan]])
    kernel = Normalized(OnColumns(Sigmoid(coef0=-9.0), [0], missing="center"))
    with pytest.raises(ValueError, match="cannot be normalised"):
        bound_to(kernel, X)
    np.testing.assert_allclose(
        bound_to(kernel.kernel, X).diag()[2], sigmoid_kernel(X[:2], gamma=1.0, coef0=-9.0).mean(), rtol=1e-12
    )


@pytest.mark.parametrize("wrap", [lambda k: OnColumns(k, [0, 2]), lambda k: Preprocessed(StandardScaler(), k)])
def test_a_wrapped_kernel_has_the_factor_of_its_kernel(wrap, X):
    Z = bound_to(wrap(Linear()), X).factor()
    np.testing.assert_allclose(Z @ Z.T, whole(wrap(Linear()), X), atol=1e-12)
    assert bound_to(wrap(RBF()), X).factor() is None
    assert bound_to(Normalized(wrap(Linear())), X).factor() is None
