"""Every rule for columns by example and counter-example, and the encoder that carries the plan out."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave.preprocessing import BlockScaler, ColumnPlan, make_encoder, plan_columns, source_positions

N = 60
RNG = np.random.default_rng(0)
SHUFFLED = RNG.permutation(N)
NOISE = RNG.normal(size=N)


def texts(values):
    return [str(value) for value in values]


def described(cells, name="x", **options):
    return plan_columns(pd.DataFrame({name: list(cells), "y": ""}), target="y", **options).columns[0]


def cycle(*cells, n=N):
    return [cells[i % len(cells)] for i in range(n)]


KINDS = {
    "decimals": (texts(NOISE), "numeric", "numbers"),
    "sorted decimals are no counter": (texts(np.sort(NOISE)), "numeric", "numbers"),
    "a regular grid of decimals": (texts(np.arange(N) / 8 + 0.0625), "numeric", "numbers"),
    "exponents, signs and blanks": (cycle("1e3", " -2.5", "+4 "), "numeric", "numbers"),
    "zeros and ones": (cycle("0", "1", "1"), "numeric", "numbers"),
    "distinct whole measurements": (texts(1000 + 7 * SHUFFLED**2), "numeric", "numbers"),
    "ordered whole numbers that repeat": (texts(np.arange(N) // 3), "numeric", "numbers"),
    "missing markers": (cycle("1.5", "NA", "n/a", "NaN", "null", "None", "?", "-", "", "2"), "numeric", "80 % missing"),
    "infinities are missing": (cycle("1", "2", "inf", "-inf"), "numeric", "50 % missing"),
    "decimal comma": (cycle("1,5", "2,25", "3"), "numeric", "numbers"),
    "decimal comma after zero": (cycle("0,125", "2,250", "3,500"), "numeric", "numbers"),
    "thousands or decimals": (cycle("1,234", "2,345", "3,456"), "categorical", "3 distinct"),
    "comma and dot": (cycle("1,5", "2.5"), "categorical", "2 distinct"),
    "underscores are no digits": (cycle("1_000", "2_000"), "categorical", "2 distinct"),
    "true and false": (cycle("True", "false", "TRUE"), "boolean", "two values"),
    "yes and no with gaps": (cycle("yes", "no", ""), "boolean", "33 % missing"),
    "y and n": (cycle("y", "n"), "boolean", "two values"),
    "yes and false are not a pair": (cycle("yes", "false"), "categorical", "2 distinct"),
    "ISO dates": (cycle("2024-01-31", "2023-02-28"), "date", "dates"),
    "ISO times": (cycle("2024-01-31T10:00:00Z", "2023-02-28 11:00"), "date", "dates"),
    "the end of time": (cycle("9999-12-31", "2024-01-31", "0001-01-01"), "date", "dates"),
    "dates with dots": (cycle("01.02.2024", "05.06.2023 "), "date", "dates"),
    "dates with names": (cycle("3 May 2024", "12 Apr 2023"), "date", "dates"),
    "day first": (cycle("31/01/2024", "01/02/2024"), "date", "dates"),
    "month first": (cycle("01/31/2024", "01/02/2024"), "date", "dates"),
    "day or month first": (cycle("01/02/2024", "03/04/2024"), "left out", "day and month cannot be told apart"),
    "not all are dates": (cycle("2024-01-31", "2024-02-31"), "categorical", "2 distinct"),
    "levels": (cycle("red", "green", "blue"), "categorical", "3 distinct"),
    "words that pandas takes for dates": (cycle("now", "today"), "categorical", "2 distinct"),
    "long answers, few of them": (cycle("I agree with all of this " * 4, "I do not agree " * 6), "categorical", "2"),
    "one value or none": (cycle("x", ""), "categorical", "one value or none"),
    "one number or none": (cycle("7", "", ""), "categorical", "one value or none"),
    "padded codes": (cycle("01067", "50667", "10115"), "categorical", "3 distinct"),
    "padded, but of several widths": (cycle("007", "12", "1234"), "numeric", "numbers"),
    "padded codes, one a row": ([f"{v:05}" for v in 100 + 7 * SHUFFLED], "left out", "ID-like: codes"),
    "row numbers": (texts(range(N)), "left out", "ID-like: whole numbers that count"),
    "row numbers with gaps in both senses": (["", *texts(range(3 * N, 6, -3))[1:N]], "left out", "ID-like"),
    "shuffled row numbers": (texts(SHUFFLED + 1), "left out", "ID-like: the numbers of a regular range"),
    "shuffled tens": (texts(10 * SHUFFLED), "left out", "ID-like: the numbers of a regular range"),
    "codes": ([f"A-{v:x}" for v in 1000 + 7 * SHUFFLED], "left out", "ID-like: codes, one for each row"),
    "names": ([f"Person Number {v}" for v in SHUFFLED], "left out", "free text (60 distinct values)"),
    "repeated remarks": (cycle(*(f"remark no {v}" for v in range(30))), "left out", "free text (30 distinct values)"),
    "many levels": (cycle(*(f"L{v}" for v in range(30))), "left out", "too many levels (30 distinct values)"),
    "long text": (cycle(*(f"{v} " + "word " * 20 for v in range(12))), "left out", "free text"),
    "all levels rare": (cycle(*(f"L{v}" for v in range(20)), n=38), "left out", "no value on 3 rows"),
    "one bad cell": (["oops", *texts(NOISE[1:])], "left out", "98.3 % of the cells are numbers, but not 'oops'"),
    "constant": (cycle("5"), "left out", "constant"),
    "constant but for a gap": (["", *cycle("5")], "left out", "constant"),
    "only markers": (cycle("", "NA", "?"), "left out", "no value"),
    "lists": ([[1]] * N, "left out", "lists"),
}


@pytest.mark.parametrize("cells, kind, reason", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("dtype", ["object", None])
def test_a_column_is_what_its_cells_say(cells, kind, reason, dtype):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=dtype), "y": ""})
    column = plan_columns(frame, target="y").columns[0]
    assert (column.kind, reason in column.reason) == (kind, True), column
    if kind != "left out":
        encoded = make_encoder(plan_columns(frame, target="y")).fit_transform(frame)
        assert encoded.dtype == np.float64
        assert np.isfinite(encoded).all()


@pytest.mark.parametrize("name, kind", [("id", "left out"), ("patient_id", "left out"), ("userId", "left out"),
                                        ("Index", "left out"), ("price", "numeric"), ("grid", "numeric")])  # fmt: skip
def test_a_name_tells_scattered_numbers_from_identifiers(name, kind):
    cells = texts(1000 + 7 * SHUFFLED**2)
    assert described(cells, name).kind == kind
    assert described(cells, name, keep=[name]).kind == "numeric"


def test_named_columns_are_left_out_and_the_target_is_not_read():
    frame = pd.DataFrame({"a": texts(NOISE), "b": texts(NOISE), "c": texts(NOISE), "y": [[1]] * N, "d": texts(NOISE)})
    plan = plan_columns(frame, target="y", id_columns=["a"], ignore=["b"], group="c")
    assert [column.name for column in plan.used] == ["d"]
    assert [column.reason for column in plan.left_out] == [
        "named as an identifier",
        "ignored on request",
        "the groups of cross-validation",
        "the target",
    ]


@pytest.mark.parametrize("options, message", [
    ({"target": "z"}, "no column 'z'; it has 'x', 'y'"),
    ({"target": "y", "ignore": ["w"]}, "no column 'w'"),
    ({"target": "y", "scale": "rows"}, "scale must be one of auto"),
    ({"target": "y", "sources": {"s": ["gene_*"]}}, "no column is called 'gene_\\*'"),
    ({"target": "y", "sources": {"s": ["x"], "t": ["*"]}}, "claimed by the sources 's' and 't'"),
])  # fmt: skip
def test_wrong_names_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        plan_columns(pd.DataFrame({"x": texts(NOISE), "y": ""}), **options)


def test_repeated_names_and_tables_without_a_use_are_refused():
    with pytest.raises(ValueError, match="more than one column called 'x'"):
        plan_columns(pd.DataFrame([["1", "2", "3"]], columns=["x", "x", "y"]), target="y")
    with pytest.raises(ValueError, match=r"No column is left to learn from .*'x': constant"):
        make_encoder(plan_columns(pd.DataFrame({"x": cycle("1"), "y": ""}), target="y"))


def mixed_frame(seed=0, n=N):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "size": rng.normal(size=n).round(3), "count": rng.integers(0, 9, n), "smoker": rng.random(n) < 0.4,
        "city": np.array(["Bonn", "Ulm", "Kiel"])[rng.integers(0, 3, n)],
        "seen": pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"), "y": "",
    })  # fmt: skip
    return frame


def as_text(frame):
    return frame.astype(object).where(frame.notna(), "").astype(str)


def test_typed_columns_give_the_same_as_their_text():
    typed = mixed_frame().astype({"count": "Int64", "city": "category", "smoker": "boolean"})
    for row, name in enumerate(("size", "count", "smoker", "city", "seen")):
        typed.loc[[row, row + 7, row + 11, row + 20], name] = None
    typed["answer"] = np.array([True, False, None] * (N // 3), dtype=object)
    plan, plan_of_text = (plan_columns(frame, target="y") for frame in (typed, as_text(typed)))
    assert plan == plan_of_text
    assert [c.kind for c in plan.used] == ["numeric", "numeric", "boolean", "categorical", "date", "boolean"]
    encoder = make_encoder(plan).fit(typed)
    assert_array_equal(encoder.transform(typed), make_encoder(plan).fit_transform(as_text(typed)))
    assert_array_equal(encoder.transform(typed), encoder.transform(as_text(typed)))


def test_a_row_number_changes_nothing():
    frame = as_text(mixed_frame())
    numbers = {"in order": np.arange(N) + 1, "shuffled": SHUFFLED, "backwards": np.arange(N)[::-1]}
    expected = make_encoder(plan_columns(frame, target="y")).fit_transform(frame)
    for row_numbers in numbers.values():
        numbered = frame.assign(nr=texts(row_numbers))
        assert_array_equal(make_encoder(plan_columns(numbered, target="y")).fit_transform(numbered), expected)


def test_new_tables_may_have_other_levels_orders_and_further_columns_but_must_have_all():
    frame = as_text(mixed_frame())
    encoder = make_encoder(plan_columns(frame, target="y")).fit(frame)
    new = as_text(mixed_frame(seed=1)).assign(more="z")
    assert_array_equal(encoder.transform(new[new.columns[::-1]]), encoder.transform(new))
    names = list(encoder.get_feature_names_out())
    levels = [names.index(name) for name in names if "city" in name]
    assert len(levels) == 3
    unseen = encoder.transform(new.assign(city="Rome", smoker=""))[:, levels]
    assert len(np.unique(unseen)) == 1  # in none of the levels
    with pytest.raises(ValueError, match="lacks the columns 'size', 'city'; it has 'count', 'smoker', 'seen', 'y'"):
        encoder.transform(frame.drop(columns=["size", "city"]))
    for name, cell in (("size", "big"), ("smoker", "perhaps"), ("seen", "yesterday")):
        with pytest.raises(ValueError, match=f"Column '{name}' was read as .* now holds '{cell}'"):
            encoder.transform(frame.assign(**{name: cell}))


def test_rare_levels_are_merged_and_unseen_ones_join_them():
    frame = pd.DataFrame({"x": [*cycle("a", "b", n=95), "c", "c", "d", "e", "f"], "y": ""})
    encoder = make_encoder(plan_columns(frame, target="y", scale="none")).fit(frame)
    assert list(encoder.get_feature_names_out()) == ["level0__x_a", "level0__x_b", "level0__x_infrequent_sklearn"]
    assert_array_equal(encoder.transform(pd.DataFrame({"x": ["a", "f", "new"]})), [[1, 0, 0], [0, 0, 1], [0, 0, 1]])


def test_gaps_become_the_median_and_many_gaps_a_column():
    few = ["", *texts(range(20, 0, -1)), "20", "1"]
    many = ["", "", "9", "1", "5", *cycle("5", "4", "6", n=18)]
    frame = pd.DataFrame({"few": few, "many": many, "y": ""})
    encoder = make_encoder(plan_columns(frame, target="y", scale="none")).fit(frame)
    assert list(encoder.get_feature_names_out()) == ["number0__few", "number0__many", "missing1__missingindicator_many"]
    assert_array_equal(encoder.transform(frame)[:2], [[10.5, 5, 1], [20, 5, 1]])
    assert_array_equal(encoder.transform(pd.DataFrame({"few": ["3"], "many": ["4"]})), [[3, 4, 0]])


def test_dates_are_days_since_the_earliest():
    for cells in (["1969-12-30", "1970-01-02", "1970-01-01"], ["30.12.1969", "02.01.1970", "01.01.1970"]):
        frame = pd.DataFrame({"x": cells, "y": ""})
        plan = plan_columns(frame, target="y", scale="none")
        assert_allclose(make_encoder(plan).fit_transform(frame)[:, 0], [0, 3, 2], atol=1e-12)


def wide_frame(n_columns, factors=1.0, name="p{}", seed=0):
    values = np.random.default_rng(seed).uniform(size=(N, n_columns)) * factors
    return pd.DataFrame({name.format(j): texts(values[:, j]) for j in range(n_columns)}).assign(y="")


def blocks(frame, **options):
    return [column.block for column in plan_columns(frame, target="y", **options).used]


def test_columns_of_one_unit_make_a_block():
    assert blocks(wide_frame(12)) == ["p*"] * 12
    assert blocks(wide_frame(12, name="{}.5")) == ["*"] * 12
    assert blocks(wide_frame(9)) == [""] * 9  # too few
    assert blocks(wide_frame(12, 10.0 ** np.arange(12))) == [""] * 12  # of many units
    assert blocks(wide_frame(12, scale_of_last := np.r_[np.ones(11), 1e4])) == ["p*"] * 11 + [""]
    assert blocks(wide_frame(12, scale_of_last), scale="block") == ["all numbers"] * 12
    assert blocks(wide_frame(12), scale="column") == blocks(wide_frame(12), scale="none") == [""] * 12
    unlike = wide_frame(12).rename(columns={f"p{j}": "abcdefghijkl"[j] for j in range(12)})
    assert blocks(unlike) == ["numbers"] * 12


def test_the_parts_count_as_said():
    frame = wide_frame(20).assign(a=texts(1e6 * NOISE), city=cycle("u", "v", "w"), flag=cycle("yes", "no", "no"))
    encoder = make_encoder(plan_columns(frame, target="y"))
    X = encoder.fit_transform(frame)
    variance = dict.fromkeys(("block", "number", "level", "flag"), 0.0)
    for name, value in zip(encoder.get_feature_names_out(), X.var(axis=0), strict=True):
        variance[name.partition("__")[0].rstrip("0123456789")] += value
    assert_allclose(list(variance.values()), [10, 1, 1, 1], rtol=1e-12)


def test_a_block_keeps_the_proportions_of_its_columns():
    X = np.random.default_rng(0).normal(size=(30, 4)) * [1, 2, 3, 0.1]
    Z = BlockScaler(variance=2.0).fit_transform(X)
    assert_allclose(Z.var(axis=0).sum(), 2.0)
    assert_allclose(np.diff(Z, axis=0) / np.diff(X, axis=0), 1 / BlockScaler(2.0).fit(X).scale_)
    assert_array_equal(BlockScaler().fit_transform(np.ones((3, 2))), 0)


def test_sources_know_their_output_columns():
    frame = as_text(mixed_frame()).assign(nr=texts(range(N)))
    sources = {"clinic": ["s*", "count"], "place": ["city", "nr"]}
    plan = plan_columns(frame.assign(other=texts(NOISE)), target="y", sources=sources)
    encoder = make_encoder(plan).fit(frame.assign(other=texts(NOISE)))
    positions = source_positions(encoder, plan)
    names = encoder.get_feature_names_out()
    found = {source: {name.partition("__")[2] for name in names[where]} for source, where in positions.items()}
    assert found == {
        "clinic": {"size", "count", "smoker", "seen"},
        "place": {"city_Bonn", "city_Kiel", "city_Ulm"},
        "": {"other"},
    }
    assert sorted(i for where in positions.values() for i in where) == list(range(len(names)))


def test_blocks_do_not_cross_sources():
    plan = plan_columns(wide_frame(24), target="y", sources={"a": [f"p{j}" for j in range(12)]})
    encoder = make_encoder(plan).fit(wide_frame(24))
    assert [len(where) for where in source_positions(encoder, plan).values()] == [12, 12]
    assert len(encoder.named_steps["encode"].transformers_) == 2


def test_plan_and_encoder_survive_json_pickle_and_clone():
    frame = as_text(mixed_frame())
    plan = plan_columns(frame, target="y", sources={"s": ["size"]})
    assert ColumnPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    encoder = make_encoder(plan).fit(frame)
    expected = encoder.transform(frame)
    for copy in (pickle.loads(pickle.dumps(encoder)), clone(encoder).fit(frame), make_encoder(plan).fit(frame)):
        assert_array_equal(copy.transform(frame), expected)


def test_skops_keeps_the_encoder():
    skops = pytest.importorskip("skops.io")
    frame = as_text(mixed_frame())
    encoder = make_encoder(plan_columns(frame, target="y")).fit(frame)
    kept = skops.dumps(encoder)
    ours = ["kernelweave.preprocessing.BlockScaler", "kernelweave.preprocessing.TableReader"]
    assert [name for name in skops.get_untrusted_types(data=kept) if name.startswith("kernelweave")] == ours
    loaded = skops.loads(kept, trusted=skops.get_untrusted_types(data=kept))
    assert_array_equal(loaded.transform(frame), encoder.transform(frame))


def svc_error(X, y, n_labeled=80, draws=3):
    """Mean error of a default SVC on the rows that `n_labeled` labels leave over, in per cent."""
    errors = []
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(y))
        labeled, rest = order[:n_labeled], order[n_labeled:]
        errors.append(np.mean(SVC(C=10).fit(X[labeled], y[labeled]).predict(X[rest]) != y[rest]))
    return 100 * np.mean(errors)


def as_table(X, y, name):
    return pd.DataFrame({name.format(j): texts(X[:, j]) for j in range(X.shape[1])}).assign(y=texts(y))


def encoded(X, y, name):
    frame = as_table(X, y, name)
    return make_encoder(plan_columns(frame, target="y")).fit_transform(frame)


def test_digits_lose_nothing_against_pixels_over_16():
    X, y = load_digits(return_X_y=True)
    assert svc_error(encoded(X, y, "p{}"), y) <= svc_error(X / 16, y) + 0.5


@pytest.mark.parametrize("name", ["V{}", "{}"])
def test_raw_wine_is_no_worse_than_standardised_wine(name):
    X, y = load_wine(return_X_y=True)
    assert_allclose(encoded(X, y, name), StandardScaler().fit_transform(X), atol=1e-9)


@pytest.mark.parametrize("cell", ["1.7976931348623157e308", "-1e200"])
@pytest.mark.parametrize("typed", [False, True])
def test_a_number_that_cannot_be_squared_is_refused_with_its_column(cell, typed):
    columns = {f"p{i}": texts(RNG.normal(size=N)) for i in range(12)}
    frame = pd.DataFrame({**columns, "y": ""}, dtype=object)
    encoder = make_encoder(plan_columns(frame, target="y")).fit(frame)
    frame.loc[5, "p3"] = cell
    frame = frame.astype(dict.fromkeys(columns, float)) if typed else frame
    sentence = r"Column 'p3' holds .*e\+(308|200); numbers beyond 1e\+150"
    with pytest.raises(ValueError, match=sentence):
        encoder.transform(frame)
    with pytest.raises(ValueError, match=sentence):
        make_encoder(plan_columns(frame, target="y")).fit(frame)
