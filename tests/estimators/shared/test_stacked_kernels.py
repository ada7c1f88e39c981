import numpy as np
import pytest
from checks.rounding import assert_same_but_for_rounding
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelweave import RBF, ForestKernel, FromCallable, KernelLibrary, Linear, ManifoldKernel, Polynomial, Precomputed
from kernelweave.estimators.shared.stacked_kernels import StackedKernels, stack_kernels
from kernelweave.kernels.checks import is_semidefinite_about_its_center
from kernelweave.kernels.forest import BoundForest
from kernelweave.kernels.manifold import BoundManifold
from kernelweave.solvers.machines.kernel_stack import Factor, KernelStack

N = 40
X = np.random.default_rng(0).normal(size=(N, 3)) + 2.0
SHARE = np.full(N, 1 / N)


def bound(*kernels, rows=X):
    return KernelLibrary(list(kernels)).bind(rows, np.random.default_rng(0))


def stacked(*kernels, share=SHARE, scale="trace", dtype="float64", rows=None, data=X):
    return stack_kernels(bound(*kernels, rows=data), share, owner="Me", scale=scale, dtype=dtype, rows=rows)


def matrix(member):
    return member.Z @ member.Z.T if isinstance(member, Factor) else member


def centered(K, share):
    """Centred by the projection that moves the origin to the mean of the rows."""
    P = np.eye(len(K)) - np.outer(np.ones(len(K)), share)
    return P @ K @ P.T


def some_share(seed=1, zeros=10):
    share = np.random.default_rng(seed).uniform(size=N)
    share[:zeros] = 0.0
    return share / share.sum()


@pytest.mark.parametrize("share", [SHARE, some_share()], ids=["equal", "some"])
def test_the_scales_are_those_of_the_centred_kernel(share):
    found = stacked(RBF(0.3), Linear(), share=share)
    for scale, K in zip(found.scales, (rbf_kernel(X, gamma=0.3), linear_kernel(X)), strict=True):
        assert scale == pytest.approx(share @ centered(K, share).diagonal(), rel=1e-10)
    found = stacked(RBF(0.3), Linear(), share=share, scale="variance")
    for scale, K in zip(found.scales, (rbf_kernel(X, gamma=0.3), linear_kernel(X)), strict=True):
        assert scale == pytest.approx(np.sqrt(share @ centered(K, share) ** 2 @ share), rel=1e-10)
    np.testing.assert_array_equal(stacked(RBF(0.3), Linear(), share=share, scale=None).scales, [1.0, 1.0])


@pytest.mark.parametrize("scale", ["trace", "variance", None])
def test_a_constant_kernel_is_not_scaled(scale):
    found = stacked(FromCallable(lambda A, B: np.full((len(A), len(B)), 5.0)), scale=scale)
    np.testing.assert_array_equal(found.scales, [1.0])


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2)], ids=str)
@pytest.mark.parametrize("offset", [1e6, 1e8, 1e12])
def test_rows_too_far_from_the_origin_are_refused(kernel, offset):
    with pytest.raises(ValueError, match=r"varies by .* of its values.*Centre the columns"):
        stacked(kernel, data=X + offset)
    equal_rows = np.full((N, 3), offset)
    np.testing.assert_array_equal(stacked(kernel, data=equal_rows).scales, [1.0])


def test_rows_far_from_the_origin_are_taken_while_digits_last():
    found = stacked(Linear(), data=X + 1e3)
    assert found.scales == pytest.approx(stacked(Linear()).scales, rel=1e-6)


@pytest.mark.parametrize("scale", ["trace", "variance", None])
@pytest.mark.parametrize("share", [SHARE, some_share()], ids=["equal", "some"])
def test_some_rows_have_the_scale_of_all(share, scale):
    rows, kernels = np.array([3, 1, 20]), (RBF(0.3), Linear(), ForestKernel(20), ManifoldKernel(RBF(), 5))
    some, everything = (stacked(*kernels, rows=at, share=share, scale=scale) for at in (rows, None))
    assert_same_but_for_rounding(some.scales, everything.scales)
    for few, many in zip(some.members, everything.members, strict=True):
        np.testing.assert_allclose(matrix(few), matrix(many)[np.ix_(rows, rows)], atol=1e-12)


def test_kernels_at_some_rows_are_not_evaluated_between_the_others(monkeypatch):
    library, evaluate, largest = bound(ManifoldKernel(RBF(), 5), ForestKernel(20)), BoundForest._count_shares, []
    monkeypatch.setattr(BoundManifold, "_inner", None)
    monkeypatch.setattr(
        BoundForest, "_count_shares", lambda self, left, right: largest.append(len(left)) or evaluate(self, left, right)
    )
    stack_kernels(library, SHARE, owner="Me", scale="trace", dtype="float64", rows=np.arange(5))
    assert largest == [5]


def test_a_kernel_of_low_rank_is_kept_as_its_factor():
    members = stacked(Linear(), RBF(0.3)).members
    assert isinstance(members[0], Factor)
    assert members[0].Z.shape == (N, 3)
    assert isinstance(members[1], np.ndarray)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_members_have_the_type_asked_for(dtype):
    members = stacked(Linear(), RBF(0.3), dtype=dtype).members
    assert [np.dtype(dtype)] * 2 == [members[0].Z.dtype, members[1].dtype]


# The origin


@pytest.mark.parametrize("share", [SHARE, some_share(), np.eye(N)[0]], ids=["equal", "some", "one row"])
def test_centring_moves_the_origin_to_the_mean_of_the_rows(share):
    found = stacked(Linear(), RBF(0.3))
    assert found.origin is None
    found.center(share)
    assert found.origin is share
    for member, K in zip(found.members, (linear_kernel(X), rbf_kernel(X, gamma=0.3)), strict=True):
        np.testing.assert_allclose(matrix(member), centered(K, share), atol=1e-12)
        np.testing.assert_allclose(matrix(member) @ share, 0.0, atol=1e-12)


def test_what_is_centred_can_be_centred_anew():
    found = stacked(Linear(), RBF(0.3))
    shares = [some_share(seed) for seed in range(20)]
    for share in shares:
        found.center(share)
    for member, K in zip(found.members, (linear_kernel(X), rbf_kernel(X, gamma=0.3)), strict=True):
        np.testing.assert_allclose(matrix(member), centered(K, shares[-1]), atol=1e-11)


def test_centring_changes_no_matrix_of_the_user():
    K = rbf_kernel(X)
    before = K.copy()
    found = stacked(Precomputed(K), data=np.arange(N)[:, None])
    found.center(SHARE)
    np.testing.assert_array_equal(K, before)
    assert np.abs(found.members[0] - before).max() > 0.1


def test_centring_does_not_change_what_the_bound_kernels_say():
    library = bound(RBF(0.3), Linear())
    found = stack_kernels(library, SHARE, owner="Me", scale=None, dtype="float64")
    before = [kernel.block(slice(None), slice(None)).copy() for kernel in library.kernels]
    found.center(SHARE)
    for kernel, block in zip(library.kernels, before, strict=True):
        np.testing.assert_array_equal(kernel.block(slice(None), slice(None)), block)


def test_a_stack_of_what_was_centred_is_symmetric():
    found = stacked(RBF(0.3), Linear())
    found.center(some_share())
    K = KernelStack(found.members, found.scales).combine(np.array([0.5, 0.5]))
    np.testing.assert_array_equal(K, K.T)


# Refusals


def test_a_kernel_whose_negative_would_do_is_refused_as_what_it_is():
    X = np.random.default_rng(0).normal(size=(20, 3))
    bound = KernelLibrary([Precomputed(-X @ X.T)]).bind(np.arange(20)[:, None], np.random.default_rng(0))
    with pytest.raises(
        ValueError, match=r"is not positive semi-definite, as MKLClassifier requires.* or use CGBoostCl"
    ):
        stack_kernels(bound, np.full(20, 0.05), owner="MKLClassifier", scale="trace", dtype="float64")


def test_a_kernel_that_is_not_symmetric_is_refused():
    with pytest.raises(ValueError, match="is not symmetric, and Me needs symmetric, positive semi-definite kernels"):
        stacked(FromCallable(lambda A, B: A @ np.triu(np.ones((3, 3))) @ B.T))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="gave values that are not finite"):
        stacked(FromCallable(lambda A, B: np.full((len(A), len(B)), value)))


@pytest.mark.parametrize("scale", ["trace", "variance"])
@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_the_scale_of_features_does_not_change_scaled_kernels(size, scale):
    found, plain = stacked(Linear(), scale=scale, data=size * X), stacked(Linear(), scale=scale)
    K = matrix(found.members[0]) / found.scales[0]
    np.testing.assert_allclose(K, matrix(plain.members[0]) / plain.scales[0], rtol=1e-10)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2, coef0=0.0)], ids=str)
@pytest.mark.parametrize("size, word", [(1e-20, "small"), (1e20, "large")])
def test_values_that_single_precision_cannot_hold_are_refused(kernel, size, word):
    stacked(kernel, data=size * X)
    with pytest.raises(ValueError, match=rf"has values of about .*, too {word} to compute with as float32\. Scale"):
        stacked(kernel, data=size * X, dtype="float32")


def test_stacked_kernels_hold_what_they_are_given():
    found = StackedKernels([np.eye(3)], np.ones(1))
    found.center(np.array([1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(found.members[0], [[0, 0, 0], [0, 2, 1], [0, 1, 2]])


@pytest.mark.parametrize("value", [1.0, 0.1, 1e8])
def test_centring_leaves_nothing_of_a_constant_kernel(value):
    share = np.random.default_rng(0).dirichlet(np.ones(9))
    Z = np.full((9, 3), value)
    stacked = StackedKernels([Z @ Z.T, Factor(Z), np.eye(9)], np.ones(3))
    stacked.center(share)
    assert not stacked.members[0].any()
    assert not stacked.members[1].Z.any()
    assert stacked.members[2].diagonal().min() > 0.5


@pytest.mark.parametrize("seed", range(5))
def test_low_rank_is_definite_up_to_the_rounding_of_the_precision_it_is_kept_in(seed):
    Z = np.random.default_rng(seed).normal(size=(60, 4))
    members = stacked(Precomputed(Z @ Z.T), dtype="float32", data=np.arange(60)[:, None], share=np.full(60, 1 / 60))
    assert is_semidefinite_about_its_center(
        KernelStack(members.members, members.scales).combine(np.ones(1)), members.rounding
    )


@pytest.mark.parametrize("scale", ["trace", "variance"])
def test_rows_that_are_not_asked_for_have_no_part(scale):
    among = np.arange(0, N, 3)
    share = np.full(len(among), 1 / len(among))
    library = bound(RBF(0.3), Linear(), Polynomial(degree=2))
    found = stack_kernels(library, share, owner="Me", scale=scale, dtype="float64", among=among)
    alone = stacked(RBF(0.3), Linear(), Polynomial(degree=2), share=share, scale=scale, data=X[among])
    np.testing.assert_allclose(found.scales, alone.scales, rtol=1e-12)
    for member, expected in zip(found.members, alone.members, strict=True):
        np.testing.assert_allclose(matrix(member), matrix(expected), atol=1e-12)
