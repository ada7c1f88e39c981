import numpy as np
import pytest

from kernelweave.labeling.gaps import are_gaps, count_gaps, count_rare_words, describe_gaps, is_gap_word, shorten_gaps

NAN = float("nan")


@pytest.mark.parametrize("text", ["#N/A", "#DIV/0!", "#div/0!", ".", "Unknown", "n.a.", "--"])
def test_words_for_nothing_are_known(text):
    assert is_gap_word(text)
    assert are_gaps([text, "1"], np.array([1000, 1]), np.array([NAN, 1.0]))


@pytest.mark.parametrize(
    "n_read, n_other, expected",
    [(4, 1, True), (3, 1, False), (38, 2, True), (37, 2, False), (0, 0, True), (0, 1, False)],
)
def test_other_texts_are_gaps_while_they_are_few(n_read, n_other, expected):
    assert are_gaps(["1", "word"], np.array([n_read, n_other]), np.array([1.0, NAN])) is expected
    assert not is_gap_word("word")


def test_gaps_are_counted_and_named():
    gaps = count_gaps(["1", "a", "#N/A"], np.array([90, 1, 4]), np.array([1.0, NAN, NAN]))
    assert list(gaps.items()) == [("#N/A", 4), ("a", 1)]
    assert describe_gaps({"x": gaps, "z": {}}) == [
        "Cells that cannot be read are gaps: '#N/A' (4 times) and 'a' in 'x'."
    ]
    assert describe_gaps({"x": {}}) == []
    assert shorten_gaps(gaps) == gaps
    assert len(str(shorten_gaps({f"{k} word " * 10**5: 1 for k in range(10**3)}))) < 10**4
    many = {f"column {k}": {f"text {j}" * 100: 1 for j in range(9)} for k in range(9)}
    (sentence,) = describe_gaps(many)
    assert sentence.endswith("; and in 4 more columns.")
    assert "and 6 other texts in 'column 0'" in sentence
    assert len(sentence) < 1000


def test_rare_words_for_missing_values_are_counted_and_usual_ones_are_not():
    cells = ["n/a", " - ", "", "n/a", float("nan"), None]
    assert count_rare_words(cells, 100) == {"n/a": 2, "-": 1}
    assert count_rare_words(["NA"] * 6, 100) == {}
