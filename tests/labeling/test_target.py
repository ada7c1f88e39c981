import numpy as np
import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.target import (
    check_groups,
    count_classes,
    find_task,
    guess_task,
    note_doubtful_classes,
    note_formulas,
    require_empty_cells,
    strip_texts,
)


def texts(*labels):
    return np.array(labels, dtype=object)


def test_blanks_around_a_text_do_not_count():
    assert strip_texts([" a", "a\t", "\u00a0a b ", "", 1.5]).tolist() == ["a", "a", "a b", "", "1.5"]


def test_a_column_without_an_empty_cell_is_refused_and_the_marker_named():
    empty = np.zeros(4, dtype=bool)
    with pytest.raises(KernelweaveError, match=r"'y' has no empty cell, so there is nothing to fill in\.$"):
        require_empty_cells(texts("a", "b", "a", "b"), empty, "y")
    for marker, option in (("n/a", "n/a"), ("?", "'[?]'"), ("Unknown ", "Unknown"), ("-1", "-1")):
        with pytest.raises(KernelweaveError, match=f"marks an unlabelled row, .*--unlabeled {option}"):
            require_empty_cells(texts("a", "b", marker, marker), empty, "y")
    require_empty_cells(texts("a", "b", "", ""), np.array([False, False, True, True]), "y")


def test_numbers_that_may_be_others_are_refused_unless_they_are_classes():
    labels = texts(*(f"{950 + 9 * i:,}" for i in range(30)))
    for task in ("auto", "regression"):
        with pytest.raises(KernelweaveError, match="'1,004', whose mark may separate thousands"):
            find_task(labels, task, "y")
    find_task(labels, "classification", "y")
    find_task(texts("1,067", "999"), "auto", "y")  # two of them are classes


@pytest.mark.parametrize("marker", ["NA", "unknown"])
def test_a_missing_number_that_is_spelled_out_is_refused(marker):
    labels = texts(marker, *(str(i / 10) for i in range(30)))
    with pytest.raises(KernelweaveError, match=f"numbers and other texts. If '{marker}' marks"):
        find_task(labels, "auto", "y")
    find_task(labels[1:], "auto", "y")
    find_task(texts(marker, "1", "2", "1"), "auto", "y")  # classes


def test_classes_are_counted():
    assert count_classes(texts("b", "a", "b", "a", "b"), "y") == {"a": 2, "b": 3}


@pytest.mark.parametrize(
    "labels, sentence",
    [
        (["a", "a"], "All labels of 'y' are 'a'"),
        (
            ["a", "a", "b"],
            "The class 'b' of 'y' has only one labelled row; .* at least 2. Label more rows, or empty that cell",
        ),
        (["a", "b"], "Label more rows, or empty that cell"),
        (["3", "3", "12"], "The class '12' .* use --task regression"),
        (["€1.36", "€-1.14", "€4.40"], "3 different texts in 3 labelled rows, such as .*dates or amounts with a unit"),
        (["2020-01-01", "2020-01-02", "2020-01-01"], "which are not read as numbers"),
        (["grade 1", "grade 1", "grade 1", "grade 2"], "The class 'grade 2' .*Label more rows"),
        (
            ["yes", "yes", "no", "no", "Yes"],
            "The class 'Yes' .*If 'Yes' and 'yes' are the same class, spell them alike",
        ),
    ],
)
def test_what_cannot_be_classes_is_refused_with_the_way_out(labels, sentence):
    with pytest.raises(KernelweaveError, match=sentence):
        count_classes(texts(*labels), "y")


@pytest.mark.parametrize(
    "classes, sentences",
    [
        (["a", "b"], []),
        (["-1", "1"], []),  # two classes
        (["-1", "0", "1"], ["if '-1' marks an unlabelled row"]),
        (["a", "unknown"], ["--unlabeled unknown"]),
        (["a", "NONE", "b"], ["--unlabeled NONE"]),
        (["0", "1", "1.0", "01"], ["'01', '1' and '1.0' differ only in how a number is written: if they are the same"]),
        (["0,5", "0,50", "1"], ["'0,5' and '0,50' differ only in how"]),
        (["1e3", "1E3"], ["'1E3' and '1e3' differ only in case:"]),
        (
            ["no", "No", "NO", "-", "1", "1.0"],
            ["if '-' marks", "'NO', 'No' and 'no' differ only in case; '1' and '1.0'"],
        ),
        (["=cmd()", "+1", "@b"], ["'=cmd()' for formulas: it is filled in as it was given, so import"]),
        (["a", "A", "b", "B", "c", "C", "d", "D"], ["'C' and 'c' differ only in case, …: if"]),
    ],
)
def test_doubtful_classes_are_named(classes, sentences):
    found = note_doubtful_classes(classes)
    assert len(found) == len(sentences)
    for note, sentence in zip(found, sentences, strict=True):
        assert sentence in note


@pytest.mark.parametrize(
    "labels, task",
    [
        (["a", "b"], "classification"),
        (["0", "1", "2"], "classification"),
        ([str(i) for i in range(30)], "regression"),
        ([f"{i / 7:.3f}" for i in range(15)], "regression"),
        (["1.5", "2.5"], "classification"),
        (["nan", "1"] * 20, "classification"),
        ([str(i) for i in range(30)] + ["x"], "classification"),
    ],
)
def test_the_task_is_guessed_from_the_target(labels, task):
    assert guess_task(np.array(labels, dtype=object)) == task


def test_a_class_in_one_group_only_is_refused():
    classes = np.array(["a", "b", "a", "b", "c", "c"], dtype=object)
    groups = np.array(["g", "g", "h", "h", "h", "h"], dtype=object)
    check_groups(groups, classes[[0, 1, 2, 3, 0, 0]])
    check_groups(groups, None)
    with pytest.raises(KernelweaveError, match=r"class 'c' are in the group 'h', .*in other groups") as caught:
        check_groups(groups, classes)
    assert caught.value.code is ErrorCode.BAD_GROUPS


@pytest.mark.parametrize("classes", [None, np.array(["a", "b"], dtype=object)])
def test_a_single_group_is_refused(classes):
    with pytest.raises(KernelweaveError, match=r"All labelled rows are in the group 'g'.*two groups"):
        check_groups(np.array(["g", "g"], dtype=object), classes)


@pytest.mark.parametrize("text", ["=cmd|'/c calc'!A1", "+1-800", "-2+3", "@SUM(A1)", "\t=A1", "\r=A1"])
def test_a_class_that_spreadsheets_take_for_a_formula_is_noted(text):
    for notes in (note_doubtful_classes(["no", text]), note_formulas([text, "no"])):
        assert len(notes) == 1
        assert "for formulas: it is filled in as it was given, so import the copy as text." in notes[0]


@pytest.mark.parametrize("text", ["a=b", "-1.5", "+2", "=", "-", " ", "1e-5"])
def test_numbers_and_signs_alone_are_no_formulas(text):
    assert note_formulas([text, "no"]) == []
