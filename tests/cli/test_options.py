import pytest

from kernelweave.cli.options import (
    check_choice,
    check_counts,
    check_limit,
    check_seed,
    parse_sources,
    read_word,
    read_words,
)
from kernelweave.errors import ErrorCode, KernelweaveError


def test_sources_are_names_with_columns_and_may_be_given_in_parts():
    assert parse_sources(["lab=a,b", "genes=gene_*", "lab=c,"]) == {"lab": ["a", "b", "c"], "genes": ["gene_*"]}


def test_words_of_another_encoding_are_read():
    assert read_words(None) == []
    assert read_words(["x", "gr\udcc3\udcb6\udcc3\udc9fe"]) == ["x", "größe"]
    assert (read_word(None), read_word("y")) == (None, "y")


@pytest.mark.parametrize(
    "check",
    [
        lambda: check_choice("guess", ("auto", "block"), "--task"),
        lambda: check_limit(0.0),
        lambda: check_limit(float("inf")),
        lambda: check_counts(seed=0, suspects=-1),
        lambda: check_seed(-1),
        lambda: check_seed(2**32),
        lambda: parse_sources(["genes="]),
        lambda: parse_sources(["genes=,"]),
        lambda: parse_sources(["=a"]),
    ],
)
def test_wrong_values_are_refused(check):
    with pytest.raises(KernelweaveError) as caught:
        check()
    assert caught.value.code is ErrorCode.BAD_OPTION


def test_right_values_are_taken():
    check_choice("auto", ("auto",), "--task")
    check_limit(None)
    check_limit(3.5)
    check_counts(suspects=0)
    check_seed(2**32 - 1)
