import pytest
from checks.model_files import as_items, as_json, craft, forge, read_parts, refer_again, write_parts

from kernelweave.persistence import load, save


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


def test_objects_that_are_saved_several_times_are_one_again(tmp_path):
    shared = {"name": ["a", "b"]}
    save([shared, [shared, (shared,)]], tmp_path / "m.skops")
    first, (second, (third,)) = load(tmp_path / "m.skops")
    assert first is second is third
