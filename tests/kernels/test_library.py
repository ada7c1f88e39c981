import pickle

import numpy as np
import pytest
from checks.rounding import assert_same_but_for_rounding
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    KernelLibrary,
    Linear,
    Normalized,
    OnColumns,
    Polynomial,
    Preprocessed,
    rbf_family,
)
from kernelweave.kernels.defaults import homogeneous_library
from kernelweave.kernels.library import Entry

N_ROWS = 23


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(N_ROWS, 3))


def bound_to(kernels, X, seed=0, **options):
    return KernelLibrary(kernels).bind(X, np.random.default_rng(seed), **options)


# Recipes


def test_a_kernel_without_a_name_is_named_by_its_repr_and_names_are_unique():
    library = KernelLibrary([Linear(), ("narrow", RBF(multiple=4.0)), Linear(), RBF(), Linear()])
    assert library.names == ("Linear()", "narrow", "Linear() #2", "RBF()", "Linear() #3")


@pytest.mark.parametrize(
    "kernels, names",
    [
        ([Linear(), ("Linear()", RBF())], ("Linear() #2", "Linear()")),
        ([Linear(), ("Linear() #2", RBF()), Linear()], ("Linear()", "Linear() #2", "Linear() #3")),
    ],
)
def test_a_given_name_is_never_changed(kernels, names):
    assert KernelLibrary(kernels).names == names


@pytest.mark.parametrize(
    "kernels",
    [
        [("a", Linear()), ("b", RBF())],
        {"a": Linear(), "b": RBF()},
        (("a", Linear()), {"b": RBF()}),
        [[("a", Linear())], [[("b", RBF())]]],
        [KernelLibrary([("a", Linear())]), ("b", RBF())],
    ],
)
def test_pairs_mappings_and_nested_lists_say_the_same(kernels):
    assert KernelLibrary(kernels) == KernelLibrary([("a", Linear()), ("b", RBF())])


def test_nested_sequences_are_flattened_in_order():
    library = KernelLibrary([Linear(), rbf_family(), KernelLibrary([Linear()])])
    assert [entry.kernel for entry in library.entries] == [Linear(), *rbf_family(), Linear()]
    assert len(library) == 6
    assert library.names[-1] == "Linear() #2"


@pytest.mark.parametrize("empty", [[], {}, (), [[], ()]])
def test_an_empty_library_is_refused(empty):
    with pytest.raises(ValueError, match=r"The kernel library is empty\. Give at least one kernel, or None for"):
        KernelLibrary(empty)


@pytest.mark.parametrize("wrong", ["rbf", 3, None, RBF, np.eye(2), [Linear(), "rbf"], [np.dot], [("a",)]])
def test_what_is_no_kernel_is_refused_with_the_remedy(wrong):
    with pytest.raises(TypeError, match=r"(?s)got .* of type .* Wrap a function as FromCallable\(f\), a matrix as"):
        KernelLibrary(wrong)


@pytest.mark.parametrize("wrong", [{"a": "rbf"}, [("a", None)]])
def test_a_named_entry_that_is_no_kernel_is_named(wrong):
    with pytest.raises(TypeError, match=r"The library's entry 'a' is .*; expected a kernel"):
        KernelLibrary(wrong)


@pytest.mark.parametrize("names", [["a", "a"], ["a__b", "c"], ["kernels", "c"]])
def test_a_name_that_parameters_could_not_be_reached_by_is_refused(names):
    with pytest.raises(ValueError, match="Kernel names must be unique, without '__' and other than 'kernels'; got"):
        KernelLibrary([(name, Linear()) for name in names])


def test_parameters_of_kernels_are_reached_by_name():
    library = KernelLibrary([("narrow", Normalized(RBF(multiple=4.0))), Linear()])
    assert library.get_params(deep=False) == {"kernels": [(entry.name, entry.kernel) for entry in library.entries]}
    assert library.get_params()["narrow__kernel__multiple"] == 4.0
    assert library.replace(narrow__kernel__multiple=8.0).entries[0] == Entry("narrow", Normalized(RBF(multiple=8.0)))
    assert library.replace(narrow=Linear()).names == ("narrow", "Linear()")
    assert library.replace(**library.get_params(deep=False)) == library
    assert library.replace(kernels=[("a", RBF())], a__gamma=2.0) == KernelLibrary([("a", RBF(2.0))])
    assert library.get_params()["narrow__kernel__multiple"] == 4.0  # the library itself never changes
    with pytest.raises(ValueError, match=r"The library has no kernel 'wide'; it has 'narrow', 'Linear\(\)'"):
        library.replace(wide__gamma=1.0)


def test_a_name_taken_from_the_repr_follows_the_kernel():
    library = KernelLibrary([RBF(), RBF(), ("mine", RBF())])
    changed = library.replace(**{"RBF() #2__gamma": 2.0, "mine__gamma": 2.0})
    assert changed.names == ("RBF()", "RBF(gamma=2.0)", "mine")


@pytest.mark.parametrize(
    "library",
    [
        homogeneous_library(),
        KernelLibrary([Linear(), Linear(), ("narrow", RBF(multiple=4.0))]),
        KernelLibrary([2.0 * (Linear() + RBF()), OnColumns(RBF(), "a*", missing="center", source="A")]),
        KernelLibrary([Preprocessed(make_pipeline(StandardScaler(), RBFSampler(n_components=7)), Linear() * RBF())]),
    ],
)
def test_repr_evaluates_to_an_equal_library(library):
    from sklearn.pipeline import Pipeline  # noqa: F401 - named by the repr

    again = eval(repr(library))
    assert again == library
    assert hash(again) == hash(library)
    assert not any("\n" in name for name in library.names)


def test_clone_shares_the_library_and_pickling_keeps_it():
    library = homogeneous_library()
    assert clone(library) is library
    assert pickle.loads(pickle.dumps(library)) == library


def test_missing_values_are_allowed_if_one_kernel_gives_them_a_meaning():
    center = OnColumns(RBF(), [0], missing="center")
    assert KernelLibrary([Linear(), 2.0 * Normalized(center)]).allows_missing
    assert not KernelLibrary([Linear(), OnColumns(RBF(), [0])]).allows_missing


# Randomness


RANDOM = Preprocessed(RBFSampler(n_components=3), Linear())


def test_equal_seeds_give_equal_bits(X):
    one, two = (bound_to([Linear(), RANDOM, RANDOM + RANDOM], X, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.columns(np.arange(3 * N_ROWS)), two.columns(np.arange(3 * N_ROWS)))


def test_each_kernel_draws_for_itself(X):
    bound = bound_to([RANDOM, RANDOM], X)
    first, second = (kernel.block(slice(None), slice(None)) for kernel in bound.kernels)
    assert not np.allclose(first, second)
    beside = bound_to([Linear(), RANDOM, RANDOM], X)  # other neighbours, which draw more or less, do not disturb it
    assert_same_but_for_rounding(beside.columns(N_ROWS + np.arange(N_ROWS)), second)


# The order of stratified pricing


def test_without_priority_cheap_kernels_come_first_and_ties_keep_their_order():
    library = KernelLibrary([RBF(), Polynomial(), Linear(), ("other", RBF(2.0)), ("again", Linear())])
    costs = [entry.kernel.cost for entry in library.entries]
    assert [costs[p] for p in library.order] == sorted(costs)
    assert library.order == (2, 4, 1, 0, 3)


def test_kernels_with_priority_come_first_in_the_order_given():
    library = KernelLibrary([Linear(), Polynomial(), ("a", RBF()), ("b", RBF())], priority=["b", "Polynomial()"])
    assert library.order == (3, 1, 0, 2)
    assert library.bind(np.eye(4), np.random.default_rng(0)).order == library.order


@pytest.mark.parametrize("priority", [["none"], ["Linear()", "Linear()"], ["RBF()", "Sigmoid()"]])
def test_a_priority_that_is_no_order_of_kernels_is_refused(priority):
    with pytest.raises(ValueError, match=r"priority must name kernels of the library, each once; got .*'Linear\(\)'"):
        KernelLibrary([Linear(), RBF()], priority=priority)


def test_priority_belongs_to_what_a_library_is():
    library = KernelLibrary([Linear(), RBF()], priority=["RBF()"])
    assert library != KernelLibrary([Linear(), RBF()])
    assert eval(repr(library)) == library
    assert hash(eval(repr(library))) == hash(library)
    assert pickle.loads(pickle.dumps(library)).order == (1, 0)
    assert clone(library) is library


def test_priority_follows_a_kernel_whose_name_changes():
    library = KernelLibrary([Linear(), RBF()], priority=["RBF()"])
    assert library.replace(**{"RBF()__gamma": 2.0}).priority == ("RBF(gamma=2.0)",)
    assert library.replace(kernels=[("RBF()", RBF(3.0)), Linear()]).priority == ("RBF()",)


@pytest.mark.parametrize(
    "wrapped, parts",
    [
        (2.0 * RBF(), [RBF()]),
        (Linear() + Polynomial(), [Linear(), Polynomial()]),
        (Linear() * RBF(), [Linear(), RBF()]),
        (Normalized(Polynomial()), [Polynomial()]),
        (OnColumns(RBF(), [0]), [RBF()]),
        (Preprocessed(StandardScaler(), Linear()), [Linear()]),
    ],
    ids=repr,
)
def test_a_kernel_made_of_others_costs_at_least_what_they_cost(wrapped, parts):
    assert wrapped.cost >= sum(part.cost for part in parts)


def test_recipes_of_one_kind_are_bound_together_in_order_each_with_its_own_stream(monkeypatch, X):
    seen = []

    def together(cls, kernels, X, rngs, sample_weight=None):
        seen.append([kernel.multiple for kernel in kernels])
        return [kernel.bind(X, rng, sample_weight) for kernel, rng in zip(kernels, rngs, strict=True)]

    kernels = [RBF("median"), Linear(), RBF("median", 4.0), Preprocessed(RBFSampler(n_components=3), Linear()), RBF()]
    expected = bound_to(kernels, X).columns(np.arange(5 * N_ROWS))
    monkeypatch.setattr(RBF, "bind_together", classmethod(together))
    np.testing.assert_array_equal(bound_to(kernels, X).columns(np.arange(5 * N_ROWS)), expected)
    assert seen == [[1.0, 4.0, 1.0]]
