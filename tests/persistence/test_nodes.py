import numpy as np
import pytest
from checks.model_files import as_items, as_json, craft, forge, named, read_parts, refer_again, write_parts

from kernelweave.persistence import load, nodes, save
from kernelweave.persistence.archive import list_types
from kernelweave.persistence.seal import read_sealed


@pytest.fixture(name="path")
def empty(tmp_path):
    """A file of an empty list, in place of a model."""
    forge(tmp_path / "m.skops", [])
    return tmp_path / "m.skops"


def refused(path, why):
    with pytest.raises(ValueError, match=f"m.skops is not a model file of kernelweave .*{why}"):
        load(path)


@pytest.mark.parametrize("depth, width", [(50, 2), (7, 10)])
def test_few_nodes_that_stand_for_very_many_are_refused(path, depth, width):
    craft(path, lambda _: refer_again(depth, width))
    refused(path, "refer to one another more than 1,000,000 times")


def test_a_few_references_are_read(path):
    craft(path, lambda _: refer_again(3))
    assert load(path) == [[[1, 1], [1, 1]], [[1, 1], [1, 1]]]


def test_a_reference_that_describes_nothing_is_refused(path):
    craft(path, lambda _: as_items([{**as_json(1), "__id__": 7}, {"__id__": 7}]))
    refused(path, "without describing it")


def test_an_object_that_holds_itself_is_refused(path):
    craft(path, lambda _: {**as_items([{**as_json(1), "__id__": 7}]), "__id__": 7})
    refused(path, "holds itself")


@pytest.mark.parametrize("number", [True, 1.0, "7", [1], None])
def test_an_object_without_a_whole_number_is_refused(path, number):
    craft(path, lambda _: {**as_json(1), "__id__": number})
    refused(path, "has the number")


def test_a_version_that_is_no_text_is_refused(path):
    parts = read_parts(path)
    parts["schema.json"]["content"]["versions"]["content"]["scikit-learn"] = refer_again(3)
    write_parts(path, parts)
    refused(path, "does not say which scikit-learn wrote it")


def as_objects(items, *shape, name="numpy.ndarray"):
    lengths = as_items([as_json(length) for length in shape], "builtins.tuple", "TupleNode")
    return named({"content": items, "shape": lengths, "type": "json"}, name, "NdArrayNode")


ONE, TWO = as_json(1), as_items([as_json(1), as_json(2)])


@pytest.mark.parametrize(
    "items, shape",
    [
        ([TWO, TWO], (2, 3)),
        ([TWO, TWO], (3, 2)),
        ([TWO, ONE], (2, 2)),
        ([ONE, ONE], (3,)),
        ([ONE], ()),
        ([TWO, TWO], (2, 1)),
        ([as_items([TWO]), as_items([TWO])], (2, 1)),
        ([as_objects([ONE], 1)] * 2, (2, 1)),
        ([as_items([as_objects([ONE], 1)])] * 2, (2, 1)),
        ([as_items([as_items([ONE], "builtins.tuple", "TupleNode")])] * 2, (2, 1)),
        ([ONE], (-1,)),
        ([ONE], ("1",)),
    ],
)
def test_an_array_of_objects_has_as_many_places_as_items(path, items, shape):
    craft(path, lambda _: as_objects(items, *shape))
    refused(path, "an array (has|is)")


def test_an_array_of_objects_is_no_single_value(path):
    craft(path, lambda _: as_objects([ONE], 1, name="numpy.float64"))
    refused(path, "other items than places")


def test_a_single_value_is_no_array(tmp_path):
    forge(tmp_path / "m.skops", np.arange(3.0))
    craft(tmp_path / "m.skops", lambda node: named(node, "numpy.float64", "NdArrayNode"))
    refused(tmp_path / "m.skops", "an array in place of one value")


@pytest.mark.parametrize("content", ["[1]", " {}", 3, None, [1]])
def test_a_value_is_a_number_or_a_text(path, content):
    craft(path, lambda _: {**ONE, "content": content})
    refused(path, "neither a number nor a text")


@pytest.mark.parametrize(
    "array",
    [
        np.array([["a", None], [1.5, np.float64(2)]], dtype=object),
        np.array([[], []], dtype=object),
        np.array([[1, 2], "a", (3,), None], dtype=object),
        np.array([[["a"], ["b"]]], dtype=object),
    ],
)
def test_arrays_of_objects_are_saved_and_loaded(tmp_path, array):
    save(array, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    assert again.shape == array.shape
    assert again.tolist() == array.tolist()


@pytest.mark.parametrize("values", [[1.0, 2.0], ["a", None]])
@pytest.mark.parametrize("mask", [False, [True, False]])
def test_masked_arrays_are_saved_and_loaded(tmp_path, values, mask):
    array = np.ma.MaskedArray(np.array(values, dtype=object if None in values else float), mask=mask)
    save([array, array], tmp_path / "m.skops")
    again, _ = load(tmp_path / "m.skops")
    assert again.tolist() == array.tolist()


def as_masked(data, mask):
    return named({"content": {"data": data, "mask": mask}}, "numpy.ma.MaskedArray", "MaskedArrayNode")


@pytest.mark.parametrize("data, mask", [(TWO, as_json(False)), (as_objects([ONE], 1), TWO)])
def test_a_mask_is_that_of_an_array(path, data, mask):
    craft(path, lambda _: as_masked(data, mask))
    refused(path, "a mask is not that of an array")


def test_an_array_has_one_mask(path):
    data = {**as_objects([ONE], 1), "__id__": 7}
    craft(path, lambda _: as_items([as_masked(data, as_json(False)), as_masked(data, as_json(True))]))
    refused(path, "a mask is not that of an array")


@pytest.mark.parametrize("types", [ONE, as_items([ONE]), as_items([named({}, "numpy.log", "FunctionNode")])])
def test_keys_have_types(path, types):
    craft(path, lambda _: {**named({"content": {"a": ONE}}, "builtins.dict", "DictNode"), "key_types": types})
    refused(path, "a dict has no keys")


@pytest.mark.parametrize(
    "part, value, why",
    [
        ("pool_size", as_json(10**5), "pool of seeds"),
        ("pool_size", TWO, "pool of seeds"),
        ("entropy", as_items([ONE] * 101), "seeds that are not loaded"),
        ("entropy", as_items([TWO]), "seeds that are not loaded"),
        ("spawn_key", as_objects([ONE], 1), "seeds that are not loaded"),
    ],
)
def test_seeds_are_a_few_numbers(tmp_path, part, value, why):
    def change(node):
        node["content"]["seed_seq"]["content"][part] = value
        return node

    forge(tmp_path / "m.skops", np.random.default_rng(3))
    craft(tmp_path / "m.skops", change)
    refused(tmp_path / "m.skops", why)


@pytest.mark.parametrize("seed", [None, 3, [1, 2, 3], 2**100])
def test_generators_of_random_numbers_are_saved_and_loaded(tmp_path, seed):
    for source in (np.random.default_rng(seed), np.random.default_rng(seed).spawn(2)[1]):
        save(source, tmp_path / "m.skops")
        assert load(tmp_path / "m.skops").random() == source.random()


def test_names_that_take_more_memory_than_the_objects_are_refused(path, monkeypatch):
    craft(path, lambda _: as_items([named({}, f"numpy.{name}", "FunctionNode") for name in ("log", "exp", "sin")]))
    assert len(load(path)) == 3
    monkeypatch.setattr(nodes, "MAX_NAMES", 1000)
    refused(path, r"holds \d+ objects of 6 types")


def test_names_in_a_place_that_is_not_read_do_not_count(path):
    parts = read_parts(path)
    parts["schema.json"]["more"] = named({}, "numpy.log", "FunctionNode")
    write_parts(path, parts)
    types, foreign = list_types(read_sealed(path)[0])
    assert "numpy.log" not in types
    assert not foreign


def test_objects_that_are_saved_several_times_are_one_again(tmp_path):
    shared = {"name": ["a", "b"]}
    save([shared, [shared, (shared,)]], tmp_path / "m.skops")
    first, (second, (third,)) = load(tmp_path / "m.skops")
    assert first is second is third
