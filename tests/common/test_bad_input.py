"""Data and parameters that make no sense are refused with one sentence, and nothing is fitted."""

import numpy as np
import pytest
from common.estimators import ESTIMATORS, cases, fitted, having, labeled_sample, outputs, sample

from kernelweave.parameters import READ_LATER

SUPERVISED = ("classes", "numbers", "features")


def spoiled(X, value):
    X = X.copy()
    X[7, 0] = value
    return X


def known(y, value):
    """The labelled rows have this label."""
    return np.where(np.isnan(y), np.nan, value)


# Name of the case: from X and y to what is given to fit; the message; the tasks that it is for.
BAD_DATA = {
    "NaN in X": (lambda X, y: (spoiled(X, np.nan), y), "Input X contains NaN", ()),
    "inf in X": (lambda X, y: (spoiled(X, np.inf), y), "Input X contains infinity", ()),
    "strings in X": (lambda X, y: (np.full(X.shape, "x"), y), "could not convert string to float", ()),
    "X with one axis": (lambda X, y: (X[:, 0], y), "Expected 2D array", ()),
    "X with three axes": (lambda X, y: (X[:, :, None], y), "Found array with dim 3", ()),
    "no rows": (lambda X, y: (X[:0], y[:0]), "minimum of 1 is required", ()),
    "no columns": (lambda X, y: (X[:, :0], y), "minimum of 1 is required", ()),
    "y is None": (lambda X, y: (X, None), "requires y to be passed", SUPERVISED),
    "y of another length": (lambda X, y: (X, y[:-1]), "X has 40 rows but y has 39", SUPERVISED),
    "inf in y": (lambda X, y: (X, np.where(np.arange(40) == 3, np.inf, y)), "inf", SUPERVISED),
    "one class": (lambda X, y: (X, known(y, 1.0)), "at least two classes", ("classes", "features")),
    "continuous y": (lambda X, y: (X, known(y, X[:, 0])), "Unknown label type", ("classes",)),
    "two columns of classes": (lambda X, y: (X, np.column_stack([y, y])), "y should be a 1d array", ("classes",)),
    "strings as numbers": (lambda X, y: (X, np.full(40, "a")), "needs numbers", ("numbers",)),
    "negative weight": (lambda X, y: (X, y, -np.ones(40)), "[Nn]egative", ()),
    "weights of NaN": (lambda X, y: (X, y, np.full(40, np.nan)), "NaN", ()),
    "all weights zero": (lambda X, y: (X, y, np.zeros(40)), "zero", ()),
    "weights of another length": (lambda X, y: (X, y, np.ones(3)), "sample_weight", ()),
    "weights that leave one class": (lambda X, y: (X, y, (y != 1) * 1.0), "two classes", ("classes", "features")),
}
APPLIES = [
    pytest.param(case, bad, id=f"{case.name}-{bad}")
    for case in ESTIMATORS
    for bad, (_, _, tasks) in BAD_DATA.items()
    if (not tasks or case.task in tasks) and (case.takes_weights or "weight" not in bad)
]


@pytest.mark.parametrize("case, bad", APPLIES)
def test_bad_data_give_one_clear_sentence_and_fit_nothing(case, bad):
    change, message, _ = BAD_DATA[bad]
    model = case.model()
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(*change(*sample(case)))
    assert "\n\n" not in str(caught.value)
    assert vars(model).keys() == model.get_params(deep=False).keys()


@cases(*SUPERVISED, where=lambda case: not case.needs_labels)
def test_at_least_one_row_must_have_a_label(case):
    X, _ = sample(case)
    for nothing in (np.full(40, np.nan), [None] * 40):
        model = case.model()
        with pytest.raises(ValueError, match="y holds no labelled row"):
            model.fit(X, nothing)
        assert not hasattr(model, "library_")


@cases()
def test_new_rows_are_as_those_of_the_fit(case):
    X, _ = sample(case)
    model = fitted(case)
    for rows, message in (
        (spoiled(X, np.nan), "Input X contains NaN"),
        (spoiled(X, -np.inf), "Input X contains infinity"),
        (X[:, :2], f"X has 2 features, but {case.name} is expecting 3"),
        (X[0], "Expected 2D array"),
    ):
        with pytest.raises(ValueError, match=message):
            outputs(model, rows)


@cases(where=lambda case: case.kernel is not None)
def test_what_is_no_kernel_is_refused(case):
    X, y = sample(case)
    one = rf"{case.name} takes a kernel such as RBF"
    several = r"A kernel library holds kernels"
    wrong = ["rbf", 3.0, [3.0]] if case.kernel == "kernel" else [["rbf"], [3.0], [sum]]
    for given in wrong:
        model = case.model(**{case.kernel: given})
        with pytest.raises(TypeError, match=one if case.kernel == "kernel" else several):
            model.fit(X, y)
        assert not hasattr(model, "library_")
    if case.kernel == "kernels":
        with pytest.raises(ValueError, match="library is empty"):
            case.model(kernels=[]).fit(X, y)


class Nonsense:
    def __repr__(self):
        return "nonsense"


CHECKED = [
    pytest.param(case, name, id=f"{case.name}-{name}")
    for case in ESTIMATORS
    for name, constraint in case.estimator._constraints.items()
    if constraint is not READ_LATER
]


@pytest.mark.parametrize("case, name", CHECKED)
def test_a_parameter_of_no_meaning_is_named_with_what_is_expected(case, name):
    model = case.model(**{name: Nonsense()})
    with pytest.raises(ValueError, match=rf"^{case.name} got {name}=nonsense; expected .*\.$"):
        model.fit(*sample(case))
    assert not hasattr(model, "library_")


@cases(where=having("epsilon"))
@pytest.mark.parametrize("epsilon", [-1e-9, np.inf, np.nan, "0.1", None])
def test_epsilon_is_a_number_and_not_negative(case, epsilon):
    with pytest.raises(ValueError, match=rf"{case.name} got epsilon=.*; expected a number, 0 or more"):
        case.model(epsilon=epsilon).fit(*sample(case))


@cases(where=having("class_weight"))
def test_a_class_that_a_training_part_lacks_may_have_a_weight(case):
    X, y = labeled_sample(case)
    weights = {0: 1.0, 1: 2.0}
    plain, more = (case.model(class_weight=given).fit(X, y) for given in (weights, weights | {2: 3.0}))
    np.testing.assert_allclose(outputs(more, X), outputs(plain, X), rtol=1e-9)
    with pytest.raises(ValueError, match=r"class_weight names the class 7; y has .*, of which .* have no weight"):
        case.model(class_weight={7: 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="class_weight='even'; expected None, \"balanced\" or a dict"):
        case.model(class_weight="even").fit(X, y)
