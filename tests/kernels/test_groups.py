import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave import RBF, CGBoostClassifier, Linear, one_kernel_per_group, rbf_family


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    names = ["gene_1", "gene_2", "gene_3", "site_a_1", "site_a_2", "age"]
    return pd.DataFrame(rng.normal(size=(30, 6)), columns=names)


def test_a_mapping_names_the_sources():
    library = one_kernel_per_group({"first": slice(0, 3), "second": [3, 4]}, rbf_family((1.0, 2.0)))
    assert len(library) == 4
    assert [entry.source for entry in library.entries] == ["first", "first", "second", "second"]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, list])
def test_prefixes_of_column_names_are_sources(frame, kind):
    groups = {pd.DataFrame: frame, pl.DataFrame: pl.from_pandas(frame), list: list(frame.columns)}[kind]
    library = one_kernel_per_group(groups)
    assert [entry.name for entry in library.entries] == ["gene", "site_a", "other"]
    assert library.entries[0].kernel.columns == ("gene_1", "gene_2", "gene_3")


def test_each_source_has_its_own_width(frame):
    wide = frame.assign(**{name: 1000.0 * frame[name] for name in ("gene_1", "gene_2", "gene_3")})
    bound = one_kernel_per_group(frame).bind(
        wide.to_numpy(), np.random.default_rng(0), feature_names=list(frame.columns)
    )
    alone = RBF().bind(frame.to_numpy()[:, :3], np.random.default_rng(0))
    everything = slice(None)
    np.testing.assert_allclose(bound.kernels[0].block(everything, everything), alone.block(everything, everything))


def test_rows_that_lack_a_source_keep_the_kernel_positive_semi_definite(frame):
    X = frame.to_numpy().copy()
    X[:7, :3] = np.nan
    library = one_kernel_per_group(frame, [Linear(), RBF()], missing="center")
    bound = library.bind(X, np.random.default_rng(0), feature_names=list(frame.columns))
    for kernel in bound.kernels:
        K = kernel.block(slice(None), slice(None))
        assert np.linalg.eigvalsh(K)[0] >= -1e-10 * np.trace(K)


def test_a_model_reports_by_source(frame):
    model = CGBoostClassifier(one_kernel_per_group(frame)).fit(frame, frame["gene_1"] > 0)
    assert {record["source"] for record in model.kernel_usage_} == {"gene", "site_a", "other"}


def test_columns_without_names_are_refused():
    with pytest.raises(ValueError, match="Groups are read from column names, but 0 is not a string"):
        one_kernel_per_group([0, 1, 2])
    with pytest.raises(ValueError, match="no group of columns"):
        one_kernel_per_group({})
