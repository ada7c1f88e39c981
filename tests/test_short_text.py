"""Short texts for people: a recipe of thousands of columns takes a line."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave import (
    RBF,
    FitState,
    KernelLibrary,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    Normalized,
    OnColumns,
    Sigmoid,
    SSMKClassifier,
)
from kernelweave.short_text import (
    cut_text,
    format_number,
    format_numbers,
    list_some,
    name_some,
    short_lists,
    short_repr,
    suggest_names,
)

GENES = [f"gene_{k}" for k in range(20_000)]
WIDE = [
    OnColumns(RBF(), GENES),
    Normalized(OnColumns(Linear(), GENES)) + RBF(),
    2.0 * OnColumns(RBF(), range(20_000)) * OnColumns(Linear(), GENES[:2]),
    ManifoldKernel(OnColumns(RBF(), GENES, source="genes")),
]
LINE = 200  # characters


@pytest.mark.parametrize("kernel", WIDE, ids=lambda kernel: type(kernel).__name__)
def test_the_repr_of_a_wide_kernel_evaluates_to_it_and_its_str_is_a_line(kernel):
    assert eval(repr(kernel)) == kernel
    assert len(str(kernel)) <= LINE
    assert "(20,000)" in str(kernel)
    assert f"{kernel}" == str(kernel)
    assert len(repr(kernel)) > 100_000  # the context of the short text is left


@pytest.mark.parametrize("kernel", [RBF(), Linear() * RBF(gamma=2.0), OnColumns(RBF(), ["a", "b"]), 2.0 * Sigmoid()])
def test_the_str_of_a_small_kernel_is_its_repr(kernel):
    assert str(kernel) == repr(kernel)


def test_a_wide_library_prints_a_line_and_has_short_names():
    library = KernelLibrary(WIDE)
    assert len(repr(library)) <= LINE + 2
    assert len(str(library)) <= LINE
    assert str(library).startswith(
        "KernelLibrary of 4 kernels: OnColumns(RBF(), ['gene_0', 'gene_1', 'gene_2', … (20,000)])"
    )
    assert all(len(name) <= LINE for name in library.names)
    assert len(set(library.names)) == 4
    assert pickle.loads(pickle.dumps(library)) == library
    assert clone(library) is library


def test_kernels_that_look_alike_when_short_have_names_of_their_own():
    library = KernelLibrary([OnColumns(RBF(), GENES), OnColumns(RBF(), [*GENES[:3], *GENES[:2:-1]])])
    assert library.names[1] == f"{library.names[0]} #2"
    changed = library.replace(**{f"{library.names[1]}__kernel__gamma": 3.0})
    assert [entry.kernel.kernel.gamma for entry in changed.entries] == ["mean", 3.0]


def test_notebooks_and_estimators_show_the_line():
    shown = []
    for thing in (WIDE[0], KernelLibrary(WIDE)):
        thing._repr_pretty_(SimpleNamespace(text=shown.append), False)
    assert shown == [str(WIDE[0]), str(KernelLibrary(WIDE))]
    KernelLibrary([RBF()])._repr_pretty_(SimpleNamespace(text=shown.append), False)
    assert shown[-1] == "KernelLibrary([RBF()])"
    assert len(repr(MKLClassifier(WIDE[0]))) < LINE
    assert len(repr(SSMKClassifier(kernels=[WIDE[0], KernelLibrary(WIDE)]))) < 1000


def raised(call):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return str(caught.value)


def test_messages_that_name_wide_kernels_or_columns_are_short():
    X = np.random.default_rng(0).normal(size=(6, 3))
    holes = np.full((6, 20_000), np.nan)
    library = KernelLibrary([OnColumns(RBF(), [f"{name}{k}" for name in GENES]) for k in range(40)])
    calls = [
        lambda: WIDE[0](X),
        lambda: OnColumns(RBF(), range(20_000))(holes),
        lambda: ManifoldKernel([WIDE[0]]),
        lambda: KernelLibrary([("a", GENES)]),
        lambda: KernelLibrary({WIDE[0]}),
        lambda: library.replace(none=RBF()),
        lambda: KernelLibrary([Linear()], priority=GENES),
        lambda: SSMKClassifier(kernels=GENES).set_params(kernels__a__gamma=1.0),
        lambda: SSMKClassifier(centers=[*range(20_000)]).fit(X, [0, 1] * 3),
        lambda: Normalized(Sigmoid(gamma=-1.0, coef0=-9.0) + OnColumns(Sigmoid(gamma=-1.0), range(3)))(X),
    ]
    for call in calls:
        assert len(raised(call)) < 700


def test_the_state_of_a_fit_and_a_model_are_lines():
    X = np.random.default_rng(0).normal(size=(30, 2))
    states: list[FitState] = []
    model = SSMKClassifier([RBF(), Linear()], callback=states.append).fit(X, X[:, 0] > 0)
    first = repr(states[0])
    assert first.startswith("<FitState 'columns added': iteration 1, objective ")
    assert "details: tau, n_columns, n_open, solutions>" in first
    assert len(first) < LINE
    assert repr(model.expansion_).startswith("<KernelExpansion: ")
    assert f"{model.n_evaluations_} kernel values a row" in repr(model.expansion_)
    assert all(len(repr(group)) < LINE for group in model.expansion_.groups)


def test_long_lists_show_the_first_and_their_number():
    assert list_some([1, 2, 3]) == "[1, 2, 3]"
    assert list_some(list(range(7))) == "[0, 1, 2, … (7)]"
    assert list_some(["a"] * 7, str) == "[a, a, a, … (7)]"
    assert name_some(["a", "b"]) == "'a', 'b'"
    assert len(name_some(["x" * 10_000] * 10_000)) < 4 * LINE


def test_a_long_text_keeps_its_beginning_and_its_end():
    cut = cut_text("begin " + "x" * 1000 + " end")
    assert len(cut) == LINE
    assert cut.startswith("begin")
    assert cut.endswith("end")
    assert cut_text("two\n  lines") == "two lines"


def test_the_context_of_short_lists_ends_with_an_error():
    with pytest.raises(KeyError), short_lists():
        raise KeyError
    assert eval(repr(WIDE[0])) == WIDE[0]
    assert short_repr(GENES) == cut_text(repr(GENES))


@pytest.mark.parametrize(
    "value, digits, sign, text",
    [
        (29193.4, 4, False, "29190"),
        (-999.6, 3, True, "-1000"),
        (1e9, 4, False, "1e+09"),
        (0.00012345, 3, False, "0.000123"),
        (0.5, 4, True, "+0.5"),
        (0.0, 3, True, "+0"),
        (float("nan"), 3, True, "–"),
        (float("inf"), 3, False, "inf"),
    ],
)
def test_numbers_have_few_digits_and_seldom_an_exponent(value, digits, sign, text):
    assert format_number(value, digits, sign) == text


@pytest.mark.parametrize(
    "values, sign, texts",
    [
        ([1.4712, 1.49, 2.7], False, ["1.47", "1.49", "2.70"]),
        ([0.5, -0.25, 0.0], True, ["+0.50", "-0.25", "+0.00"]),
        ([-0.00001, 0.25, 0.5], False, ["0.00", "0.25", "0.50"]),  # one small number needs no more decimals
        ([29193.4, 512.25, 1670.2], False, ["29200", "512", "1670"]),
        ([2.0, 3.0], False, ["2", "3"]),
        ([float("nan"), 1.5, float("inf")], False, ["–", "1.5", "inf"]),
        ([3e12, 1.5], False, ["3e+12", "1.5"]),
        ([0.0, 0.0], False, ["0", "0"]),
        ([], False, []),
    ],
)
def test_numbers_of_one_column_have_the_same_decimals(values, sign, texts):
    assert format_numbers(values, 3, sign) == texts


def test_names_that_look_like_a_wrong_one_are_suggested():
    assert suggest_names(["Outcom"], ["age", "outcome", "x"]) == " Did you mean 'outcome'?"
    assert suggest_names(["AGE", "outcom"], ["age", "outcome"]) == " Did you mean 'age' or 'outcome'?"
    assert suggest_names(["gene_7"], []) == suggest_names(["zebra"], ["age"]) == suggest_names([3], ["age"]) == ""
    assert len(suggest_names([f"{name}x" * 50 for name in GENES], [name * 50 for name in GENES])) < LINE
