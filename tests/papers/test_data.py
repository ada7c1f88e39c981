import numpy as np
import pytest

from kernelweave.papers import data


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """Neither the benchmark data nor a cache nor a server."""
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setenv("KERNELWEAVE_CACHE", str(tmp_path))
    data._try_loading.cache_clear()
    yield
    data._try_loading.cache_clear()


def test_a_fast_run_without_data_gets_generated_rows_and_says_so(no_data):
    found = data.mnist_odd_even(fast=True)
    assert found.source == "generated"
    assert found.X.shape[1] == 784
    assert 0 <= found.X.min() < found.X.max() <= 1
    assert set(found.y) == {0, 1}
    again = data.mnist_odd_even(fast=True)
    np.testing.assert_array_equal(found.X, again.X)


def test_a_whole_run_without_data_says_where_they_should_be(no_data, monkeypatch):
    monkeypatch.setattr(data, "load", lambda name, download_if_missing: data_is_missing(name))
    with pytest.raises(FileNotFoundError, match="text_ssl"):
        data.rows("text_ssl", fast=False, instead=data.generated_digits)


def data_is_missing(name):
    raise FileNotFoundError(f"The set {name!r} is not on this machine.")


def test_original_rows_are_pixels_between_0_and_1(data_dir):
    found = data.mnist_odd_even(fast=False)
    assert found.source == "original"
    assert found.X.shape == (14000, 784)
    assert (found.X.min(), found.X.max()) == (0, 1)
    assert set(found.y) == {0, 1}
