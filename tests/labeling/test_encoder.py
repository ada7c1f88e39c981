"""The encoder carries the plan out: what comes out, of which size, and that it can be kept."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kernelweave.labeling.columns import ColumnPlan, plan_columns
from kernelweave.labeling.encoder import TEXT_VARIANCE, column_positions, make_encoder, source_positions

N = 60
RNG = np.random.default_rng(0)
SHUFFLED = RNG.permutation(N)
NOISE = RNG.normal(size=N)


def texts(values):
    return [str(value) for value in values]


def cycle(*cells, n=N):
    return [cells[i % len(cells)] for i in range(n)]


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
        with pytest.raises(
            ValueError, match=f"Column '{name}' was .* in the table that was learned from, and here it holds '{cell}'"
        ):
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


def test_the_parts_count_as_said():
    frame = wide_frame(20).assign(a=texts(1e6 * NOISE), city=cycle("u", "v", "w"), flag=cycle("yes", "no", "no"))
    encoder = make_encoder(plan_columns(frame, target="y"))
    X = encoder.fit_transform(frame)
    variance = dict.fromkeys(("block", "number", "level", "flag"), 0.0)
    for name, value in zip(encoder.get_feature_names_out(), X.var(axis=0), strict=True):
        variance[name.partition("__")[0].rstrip("0123456789")] += value
    assert_allclose(list(variance.values()), [10, 1, 1, 1], rtol=1e-12)


@pytest.mark.parametrize("offset", [0, 10**6, -(10**12), 2**52])
@pytest.mark.parametrize("n_columns", [3, 12])
def test_where_a_column_lies_does_not_matter(offset, n_columns):
    numbers = np.random.default_rng(0).integers(0, 300, size=(1000, n_columns))  # exact beside every offset
    near, far = (pd.DataFrame(numbers + shift).add_prefix("p").assign(y="") for shift in (0, offset))
    plan, plan_far = (plan_columns(frame, target="y") for frame in (near, far))
    assert plan == plan_far
    expected = make_encoder(plan).fit_transform(near)
    # The block's shift is one mean of all, rounded to a unit in the last place of 2^52, which is 1.
    shift = make_encoder(plan).fit_transform(far) - expected
    assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-12)
    assert_allclose(shift, 0, atol=1e-12 + 2 * np.spacing(float(abs(offset))) / numbers.std() * (n_columns > 10))


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
    ours = {"kernels.scaling.ColumnScaler", "kernels.scaling.BlockScaler", "labeling.encoder.TableReader"}
    found = [name for name in skops.get_untrusted_types(data=kept) if name.startswith("kernelweave")]
    assert set(found) == {f"kernelweave.{name}" for name in ours}
    loaded = skops.loads(kept, trusted=skops.get_untrusted_types(data=kept))
    assert_array_equal(loaded.transform(frame), encoder.transform(frame))


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


def test_each_column_of_the_table_knows_the_features_it_became():
    frame = pd.DataFrame(
        {
            "a": [f"{i * 7 % 11}.5" if i % 4 else "" for i in range(40)],
            "b": [f"{i * 5 % 13}.5" for i in range(40)],
            "kind": [["red", "green", "blue"][i % 3] for i in range(40)],
            "flag": [["yes", "no"][i % 2] for i in range(40)],
            "y": [""] * 40,
        }
    )
    plan = plan_columns(frame, target="y")
    encoder = make_encoder(plan).fit(frame)
    names = encoder.get_feature_names_out()
    positions = column_positions(encoder)
    assert sorted(positions) == ["a", "b", "flag", "kind"]
    assert sorted(position for found in positions.values() for position in found) == list(range(len(names)))
    for column, found in positions.items():
        assert all(column in names[position].partition("__")[2] for position in found)
    assert [len(positions[name]) for name in ("a", "b", "kind", "flag")] == [2, 1, 3, 1]


def test_times_of_day_are_points_of_a_circle_and_missing_ones_its_centre():
    frame = pd.DataFrame({"start": cycle("23:59", "00:01", "12:00", ""), "size": texts(NOISE), "y": ""})
    plan = plan_columns(frame, target="y")
    encoder = make_encoder(plan).fit(frame)
    where = column_positions(encoder)["start"]
    names = [name for name in encoder.get_feature_names_out() if "start" in name]
    assert names == ["missing1__missingindicator_start", "time2__start_sine", "time2__start_cosine"]
    late, early, noon, missing = encoder.transform(frame)[:4, where[1:]]
    assert np.linalg.norm(late - early) < 0.01
    assert_allclose(np.linalg.norm(noon - early), 2, atol=1e-4)
    assert_array_equal(missing, [0, 0])


def test_durations_are_scaled_as_numbers_are():
    minutes = np.arange(N) % 7 * 10.0 + NOISE.round()
    frame = pd.DataFrame({"took": [f"{int(m) // 60} h {int(m) % 60} min" for m in 60 + minutes], "y": ""})
    number = pd.DataFrame({"took": texts(minutes), "y": ""})
    found, expected = (make_encoder(plan_columns(each, target="y")).fit_transform(each) for each in (frame, number))
    assert_allclose(found, expected, atol=1e-12)


def test_text_takes_as_much_room_as_said_and_unseen_words_are_read():
    remarks = [f"{['red', 'green', 'blue'][i % 3]} item {v}" for i, v in enumerate(SHUFFLED)]
    frame = pd.DataFrame({"remark": remarks, "y": ""})
    encoder = make_encoder(plan_columns(frame, target="y")).fit(frame)
    X = encoder.transform(frame)
    assert_allclose(X.var(axis=0).sum(), TEXT_VARIANCE, rtol=1e-10)
    assert list(column_positions(encoder)) == ["remark"]
    assert np.isfinite(encoder.transform(pd.DataFrame({"remark": ["", "yellow moon", None]}))).all()
