import numpy as np
import pytest

from kernelweave.labeling.numbers import as_numbers, decimal_mark, number_form, with_thousands


def test_numbers_are_read_from_texts():
    np.testing.assert_array_equal(as_numbers(np.array(["1", "-2.5", "1e3"], dtype=object)), [1, -2.5, 1000])
    assert as_numbers(np.array(["1", "inf"], dtype=object)) is None


@pytest.mark.parametrize(
    "labels, numbers",
    [
        (["3,5", "12,75", "4"], [3.5, 12.75, 4.0]),
        (["3,5", "1,067"], [3.5, 1.067]),  # 3,5 cannot be thousands
        (["0,125", "2,250"], [0.125, 2.25]),
        (["1234,567", "2"], [1234.567, 2.0]),
        ([" 3.5", ".5", "5.", "+1E-3"], [3.5, 0.5, 5.0, 0.001]),
        (["999", "1,067"], None),
        (["1,234,567", "1,5"], None),
        (["999.50", "1,067.25"], None),
        (["3,5", "2.5"], None),
        (["26_0", "1_1"], None),
        (["1", ""], None),
        (["1e999"], None),
        (["0x10"], None),
    ],
)
def test_a_text_is_a_number_only_if_it_can_be_no_other(labels, numbers):
    found = as_numbers(labels)
    assert (found is None) if numbers is None else (found.tolist() == numbers)


@pytest.mark.parametrize(
    "labels, first",
    [
        (["999", "1,067", "2,001"], "1,067"),
        (["1,234,567", "1,5"], "1,234,567"),
        (["999.50", "1,067.25"], "1,067.25"),
        (["1.067,50", "12,75"], "1.067,50"),
        (["1 067", "999"], "1 067"),
        (["1'067", "999"], "1'067"),
        (["3,5", "1,067"], None),
        (["1.067", "999"], None),
        (["1,067", "red"], None),
        (["26_0"], None),
    ],
)
def test_marks_between_thousands_are_seen(labels, first):
    assert with_thousands(labels) == first


@pytest.mark.parametrize(
    "labels, form",
    [
        (["1", "22"], ".0f"),
        (["1,5", "22,75"], ".2f"),
        (["0.00000000003"], ".11f"),
        (["3e-11", "2e-11"], ".2e"),
        (["3.2e-11", "2.1234E-11"], ".4E"),
        (["0.00012", "3.25e-05"], ".3g"),
        (["1.2345678901234567890e5"], ".16e"),
    ],
)
def test_the_form_of_numbers_is_that_of_the_column(labels, form):
    assert number_form(labels) == form
    mark = decimal_mark(labels)
    value = as_numbers(labels)[0]
    assert as_numbers([format(value, form).replace(".", mark)])[0] == pytest.approx(value, rel=1e-2)
