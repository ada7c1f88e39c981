import numpy as np
import pytest
from checks.model_files import forge
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder
from sklearn.svm import SVC

from kernelweave import ForestKernel, MKLClassifier
from kernelweave.estimators.auto.trees import TreesClassifier, TreesRegressor
from kernelweave.kernels.scaling import ColumnScaler
from kernelweave.labeling.encoder import TableReader
from kernelweave.labeling.models import ClassModel, NumberModel
from kernelweave.persistence import load, save
from kernelweave.persistence.objects import check_objects, walk_objects

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(X[:, 0] > 0, "yes", "no")
LEVELS = np.array([list("abcabcabcd"), list("xxyyyxxyyx")], dtype=object).T
TEXTS = ["one two", "two three", "three four five"]


def fitted_forest():
    return MKLClassifier([ForestKernel(5)]).fit(X, Y)


SOUND = {
    "numbers of levels": lambda: OneHotEncoder().fit(np.column_stack([np.arange(5.0), [0, 1, 0, 1, np.nan]])),
    "levels in any order": lambda: OneHotEncoder(categories=[["b", "a"]]).fit(np.array([["a"], ["b"]])),
    "levels": lambda: OneHotEncoder().fit(LEVELS),
    "rare levels": lambda: OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist").fit(LEVELS),
    "dropped levels": lambda: OneHotEncoder(drop="first").fit(LEVELS),
    "dropped binary levels": lambda: OneHotEncoder(drop="if_binary", min_frequency=3).fit(LEVELS),
    "bins": lambda: KBinsDiscretizer(3).fit(X),
    "neighbours": lambda: KNeighborsClassifier(algorithm="brute").fit(X, Y),
    "neighbours by powers": lambda: KNeighborsClassifier(algorithm="brute", p=3).fit(X, Y),
    "neighbours of two outputs": lambda: KNeighborsClassifier(algorithm="brute").fit(X, np.column_stack([Y, Y])),
    "numbers of neighbours": lambda: KNeighborsRegressor(algorithm="brute").fit(X, X[:, 0]),
    "words": lambda: CountVectorizer().fit(TEXTS),
    "weighted words": lambda: TfidfVectorizer().fit(TEXTS),
    "trees": lambda: TreesClassifier(random_state=0).fit(X, Y),
    "trees of numbers": lambda: TreesRegressor(boosted=True, random_state=0).fit(X, X[:, 0]),
    "forest kernel": fitted_forest,
    "function": lambda: FunctionTransformer(rbf_kernel, kw_args={"gamma": 0.5}).fit(X),
    "function with jobs": lambda: FunctionTransformer(mutual_info_classif, kw_args={"n_jobs": 2}),
    "random state": lambda: np.random.RandomState(3),
    "generator": lambda: np.random.default_rng(3),
    "Philox": lambda: np.random.Generator(np.random.Philox(3)),
    "nothing fitted": lambda: make_pipeline(
        OneHotEncoder(), KNeighborsClassifier(), CountVectorizer(), TreesClassifier()
    ),
}


@pytest.mark.parametrize("make", SOUND.values(), ids=SOUND)
def test_objects_as_they_are_fitted_pass(make, tmp_path):
    check_objects({"model": [make()]})
    save(make(), tmp_path / "m.skops")
    load(tmp_path / "m.skops")


def assign(**attributes):
    def change(item):
        for name, value in attributes.items():
            item.__dict__[name] = value
        return item

    return change


def spoil(name, place, value):
    """Write a value into an array of an object."""

    def change(item):
        array = getattr(item, name)
        array[place] = value
        return item

    return change


def spoil_forest(change):
    def spoiled(model):
        (forest,) = {id(each): each for each in walk_objects(model) if type(each).__name__ == "Forest"}.values()
        change(forest)
        return model

    return spoiled


def disguise(attributes):
    """An object of kernelweave that has no checks, with the attributes of another."""
    return assign(**attributes)(ColumnScaler())


def replace(model, owner, name):
    """Put an object of another type in place of an attribute."""
    for item in walk_objects(model):
        if type(item).__name__ == owner:
            item.__dict__[name] = disguise(vars(item)[name].__dict__ if hasattr(vars(item)[name], "__dict__") else {})
    return model


CRAFTED = {
    "fewer columns than levels": ("levels", assign(_n_features_outs=[1, 2])),
    "more columns than levels": ("levels", assign(_n_features_outs=[4, 10**9])),
    "one column of levels less": ("levels", assign(_n_features_outs=[4])),
    "columns as an array": ("levels", assign(_n_features_outs=np.array([4, 2]))),
    "columns that are no whole numbers": ("levels", assign(_n_features_outs=[4.0, True + 1])),
    "levels that descend": ("numbers of levels", lambda e: spoil("categories_", 0, np.arange(5.0)[::-1])(e)),
    "a level twice": ("numbers of levels", lambda e: spoil("categories_", 0, np.array([0.0, 1, 1, 2, 3]))(e)),
    "no number before others": ("numbers of levels", lambda e: spoil("categories_", 1, np.array([0, np.nan, 1]))(e)),
    "levels of two dimensions": ("levels", lambda e: spoil("categories_", 1, np.array([["x", "y"]] * 2))(e)),
    "hidden levels": (
        "numbers of levels",
        lambda e: spoil("categories_", 0, np.ma.masked_equal([4.0, 3, 2, 1, 0], 3))(e),
    ),
    "levels as an array": ("bins", lambda b: (assign(categories_=np.zeros((3, 3)))(b._encoder), b)[1]),
    "a group that is hidden": (
        "rare levels",
        lambda e: spoil("_default_to_infrequent_mappings", 0, np.ma.masked_equal([0, 1, 2, 9], 9))(e),
    ),
    "a group that is none": ("rare levels", lambda e: spoil("_default_to_infrequent_mappings", 0, np.full(4, 9))(e)),
    "groups of other levels": (
        "rare levels",
        lambda e: spoil("_default_to_infrequent_mappings", 0, np.zeros(3, int))(e),
    ),
    "a dropped level that is none": ("dropped levels", assign(_drop_idx_after_grouping=np.array([-5, 0]))),
    "bins of other columns": ("bins", lambda b: (assign(_n_features_outs=[1, 1, 1])(b._encoder), b)[1]),
    "neighbours of other columns": ("neighbours", assign(_fit_X=np.ones((40, 1)))),
    "fewer neighbours": ("neighbours", assign(_fit_X=np.ones((4, 3)))),
    "neighbours without numbers": ("neighbours", assign(_fit_X=np.full((40, 3), np.nan))),
    "sparse neighbours of other columns": ("neighbours", assign(_fit_X=sparse.csr_matrix(np.ones((40, 9))))),
    "a class that is none": ("neighbours", spoil("_y", 3, 10**6)),
    "a class that is hidden": ("neighbours", assign(_y=np.ma.masked_equal([10**7] + [0] * 39, 10**7))),
    "a negative class": ("neighbours of two outputs", spoil("_y", (3, 1), -9)),
    "classes of other rows": ("neighbours", assign(_y=np.zeros(3, dtype=int))),
    "another search": ("neighbours", assign(_fit_method="kd_tree")),
    "another metric": ("neighbours", assign(effective_metric_="mahalanobis")),
    "lengths of fewer rows": ("neighbours", assign(effective_metric_params_={"Y_norm_squared": np.ones(1)})),
    "weights of fewer columns": ("neighbours by powers", assign(effective_metric_params_={"p": 3, "w": np.ones(1)})),
    "a power that is none": ("neighbours by powers", assign(effective_metric_params_={"p": "3"})),
    "a word of no column": ("words", assign(vocabulary_={"one": 10**9})),
    "a word before all columns": ("weighted words", assign(vocabulary_={"one": -1, "two": 0})),
    "no vocabulary": ("words", assign(vocabulary_=[1, 2])),
    "a root that is none": ("forest kernel", spoil_forest(lambda f: spoil("roots", 0, 10**9)(f))),
    "a negative node": ("forest kernel", spoil_forest(lambda f: spoil("child", 1, -7)(f))),
    "a node after the last": ("forest kernel", spoil_forest(lambda f: spoil("threshold", -1, 0.0)(f))),
    "depths without end": ("forest kernel", spoil_forest(lambda f: spoil("depths", 0, 10**15)(f))),
    "a negative column": ("forest kernel", spoil_forest(lambda f: spoil("column", 0, -1)(f))),
    "texts as nodes": ("forest kernel", spoil_forest(assign(child=np.array(["a"])))),
    "a column that rows do not have": ("trees", spoil_forest(lambda f: spoil("column", 0, 3)(f))),
    "fewer values than leaves": ("trees", assign(values_=np.ones((3, 2)))),
    "leaves without a value": ("trees of numbers", spoil("values_", 0, np.nan)),
    "another object as trees": ("trees", lambda m: assign(forest_=disguise(vars(m.forest_)))(m)),
    "another object as a forest": ("forest kernel", lambda m: replace(m, "BoundForest", "forest")),
    "another object as groups": ("forest kernel", lambda m: replace(m, "KernelExpansion", "groups")),
    "another object as a kernel": ("forest kernel", lambda m: replace(m, "ExpansionGroup", "bound")),
    "jobs": ("nothing fitted", lambda p: (assign(n_jobs=10**6)(p[1]), p)[1]),
    "a folder to write to": ("nothing fitted", assign(memory="folder")),
    "jobs of a function": ("function with jobs", assign(kw_args={"n_jobs": 30_000})),
    "jobs as text": ("nothing fitted", lambda p: (assign(n_jobs="all")(p[1]), p)[1]),
}


@pytest.mark.parametrize("of, change", CRAFTED.values(), ids=CRAFTED)
def test_arrays_that_do_not_fit_together_are_refused(of, change, tmp_path):
    model = change(SOUND[of]())
    forge(tmp_path / "m.skops", model)
    with pytest.raises(ValueError, match=r"m.skops is not a model file of kernelweave \(its \w+ \w.*\)\.$"):
        load(tmp_path / "m.skops")
    with pytest.raises(ValueError, match="cannot be saved"):
        save(model, tmp_path / "other.skops")


@pytest.mark.parametrize("position", [-1, 625, 10**9])
def test_a_random_state_at_no_position_is_refused(position):
    source = np.random.RandomState(0)
    state = source.get_state(legacy=False)
    state["state"]["pos"] = position
    source.set_state(state)
    with pytest.raises(ValueError, match="position"):
        check_objects([source])


def number_model(**changed):
    values = {"center": 0.0, "unit": 1.0, "coverage": 0.9, "number_format": ".2f", "decimal_mark": "."}
    return NumberModel(None, **{**values, **changed})


@pytest.mark.parametrize(
    "model",
    [
        number_model(number_format=".1000000f"),
        number_model(number_format=".2f" * 10),
        number_model(number_format=">1000000"),
        number_model(decimal_mark="." * 10**6),
        number_model(center=float("nan")),
        number_model(unit=0.0),
        number_model(unit="1"),
        number_model(coverage=2.0),
        ClassModel(None, False, 7.0),
        TableReader([{"name": "a", "kind": "date", "form": "%Y" * 10**5, "origin": ""}]),
        TableReader([{"name": "a"}]),
        TableReader([{"name": 3, "kind": "date", "form": "", "origin": ""}]),
    ],
)
def test_models_of_tables_with_values_that_no_table_leads_to_are_refused(model, tmp_path):
    forge(tmp_path / "m.skops", Pipeline([("model", model)]))
    with pytest.raises(ValueError, match=r"is not a model file of kernelweave \(its \w+ has \w.*\)"):
        load(tmp_path / "m.skops")


def test_machines_of_libsvm_are_refused_whatever_they_hold(tmp_path):
    machine = SVC().fit(X, Y)
    with pytest.raises(ValueError, match=r"load would refuse: sklearn.svm._classes.SVC"):
        save(machine, tmp_path / "m.skops")
    machine._n_support = np.array([10**6, 10**6], dtype=np.int32)  # predict would read there
    forge(tmp_path / "m.skops", machine)
    with pytest.raises(ValueError, match=r"does not load from files: sklearn.svm._classes.SVC"):
        load(tmp_path / "m.skops")


def test_measures_that_read_beyond_their_arguments_are_refused(tmp_path):
    """scipy would read a matrix of 3 x 3 from this one number."""
    measure = FunctionTransformer(pairwise_distances, kw_args={"metric": "mahalanobis", "VI": np.eye(1)})
    with pytest.raises(ValueError, match=r"load would refuse: sklearn.metrics.pairwise.pairwise_distances"):
        save(measure, tmp_path / "m.skops")
    forge(tmp_path / "m.skops", measure)
    with pytest.raises(ValueError, match=r"does not load from files: sklearn.metrics.pairwise.pairwise_distances"):
        load(tmp_path / "m.skops")


def test_every_object_is_seen_once_whatever_holds_it():
    one, two = np.arange(2), {"a": (1, [np.array([{"deep": 3}], dtype=object)])}
    loop: list = [one, one, two]
    loop.append(loop)
    found = list(walk_objects(loop))
    assert len(found) == len({id(each) for each in found})
    assert {"deep": 3} in [each for each in found if isinstance(each, dict)]


def test_attributes_of_lists_dicts_and_arrays_are_seen():
    class Titled(dict):
        pass

    titled = Titled(a=1)
    titled.title = title = {"hidden": 1}
    hidden = {"hidden": 2}
    masked = np.ma.MaskedArray(np.array([hidden, {}], dtype=object), mask=[True, False])
    found = {id(each) for each in walk_objects([titled, masked])}
    assert {id(title), id(hidden)} <= found
