import pickle
import warnings

import numpy as np
import pytest
from common.test_callbacks import Recorder
from joblib import parallel_config
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import RBF, AutoKernelClassifier, Linear, MKLClassifier, RKDAClassifier, SSMKClassifier
from kernelweave.estimators.shared import callbacks as bridge
from kernelweave.estimators.shared.callbacks import SubFit, no_task, open_search, with_tasks
from kernelweave.solvers.result import Status

sklearn_callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")

X, y = make_moons(60, noise=0.3, random_state=0)
CLASSES = y + (X[:, 0] > 1)
PAIR = [RBF(), Linear()]
SVM = MKLClassifier(PAIR, C=1.0, weighting="learned")


class Follower(Recorder):
    """Is handed on to the estimators inside of the one it is set on."""

    max_propagation_depth = None

    def paths(self, hook="end"):
        """Where each task is in the tree, by names of estimators and tasks."""
        return [_path(context) for context, _ in self.tasks(hook)]


def _path(context):
    above = [] if context.parent is None else _path(context.parent)
    return [*above, f"{context.estimator_name} {context.task_name}"]


def own_weights(**options):
    return MKLClassifier(PAIR, C=1.0, weighting="learned", share_weights=False, **options)


def test_each_class_is_a_problem_with_steps_of_its_own():
    recorder = Recorder()
    own_weights().set_callbacks(recorder).fit(X, CLASSES)
    problems = [context for context, _ in recorder.tasks() if context.task_name == "problem"]
    assert [problem.task_id for problem in problems] == [0, 1, 2]
    assert {problem.parent.max_subtasks for problem in problems} == {3}
    assert sorted({state.problem for state in recorder.states()}) == [0, 1, 2]


def test_who_stops_the_problems_stops_those_that_follow():
    recorder = Recorder(lambda context: context.task_name == "problem")
    model = own_weights(tol=1e-12).set_callbacks(recorder).fit(X, CLASSES)
    n_steps = np.bincount([state.problem for state in recorder.states()])
    assert n_steps[0] > 1
    assert n_steps[1:].tolist() == [1, 1]
    assert model.status_ is Status.CALLBACK


def test_both_ways_of_choosing_weights_are_problems():
    recorder = Recorder()
    RKDAClassifier(PAIR, weighting="auto").set_callbacks(recorder).fit(X, y)
    assert {(state.problem, state.n_problems) for state in recorder.states()} == {(0, 2), (1, 2)}


def test_a_grid_search_follows_every_fit():
    follower = Follower()
    search = GridSearchCV(SVM, {"C": [0.1, 1.0]}, cv=2).set_callbacks(follower).fit(X, y)
    fits = [path for path in follower.paths() if path[-1] == "MKLClassifier fit"]
    assert len(fits) == 5
    assert fits[-1] == ["GridSearchCV fit", "MKLClassifier fit"]
    assert all(path[:2] == ["GridSearchCV fit", "GridSearchCV search"] for path in fits[:-1])
    assert not hasattr(search.best_estimator_, "_skl_callbacks")
    assert not hasattr(search.best_estimator_, "_parent_callback_ctx")


def test_a_pipeline_follows_its_last_step():
    follower = Follower()
    make_pipeline(StandardScaler(), SVM).set_callbacks(follower).fit(X, y)
    assert ["Pipeline fit", "MKLClassifier fit", "MKLClassifier solve", "MKLClassifier step"] in follower.paths()


def test_steps_that_nobody_follows_are_not_kept():
    recorder = Recorder()  # is not handed on
    GridSearchCV(SVM, {"C": [0.1, 1.0]}, cv=2).set_callbacks(recorder).fit(X, y)
    root = recorder.tasks()[-1][0]
    assert "step" not in {context.task_name for context in root}


CANDIDATES = [("SVM", SVM), ("logistic", LogisticRegression())]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_follows_candidates_and_folds(n_jobs):
    follower = Follower()
    model = AutoKernelClassifier(CANDIDATES, n_repeats=1, race=False, n_jobs=n_jobs).set_callbacks(follower)
    with parallel_config(backend="threading"):
        model.fit(X, np.where(np.arange(60) < 30, y, np.nan))
    search = next(context for context, _ in follower.tasks() if context.task_name == "search")
    fits = [context for context in search if context.parent is search]
    assert search.max_subtasks == len(fits) == 12
    names = {
        f"{name}, {part}"
        for name in ("SVM", "logistic")
        for part in ("all labels", *map("fold {}".format, range(1, 6)))
    }
    assert {context.source_task_name for context in fits} == names
    below = ["AutoKernelClassifier fit", "AutoKernelClassifier search", "MKLClassifier fit", "MKLClassifier solve"]
    assert [*below, "MKLClassifier step"] in follower.paths()
    assert not any(hasattr(member.model, "_skl_callbacks") for member in model.members_)


def test_a_search_stops_after_the_fit_whose_end_says_so():
    follower = Follower(lambda context: context.source_task_name == "SVM, fold 1")
    y_few = np.where(np.arange(60) < 30, y, np.nan)
    model = AutoKernelClassifier(CANDIDATES, n_repeats=1).set_callbacks(follower).fit(X, y_few)
    assert model.status_ is not Status.SEARCH_STOPPED  # that was the fit inside; the search is not asked
    recorder = Recorder(lambda context: context.task_name == "SVM, fold 1")
    model = AutoKernelClassifier(CANDIDATES, n_repeats=1).set_callbacks(recorder).fit(X, y_few)
    assert model.status_ is Status.SEARCH_STOPPED
    assert [member.name for member in model.members_] == ["SVM"]


class Counting:
    """Can be sent to another process."""

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        estimator.n_ends = getattr(estimator, "n_ends", 0) + 1


def test_the_fit_of_a_candidate_can_be_sent_to_another_process():
    owner = AutoKernelClassifier().set_callbacks(Counting())
    root = owner._init_callback_context(max_subtasks=1)
    context = root.subcontext("SVM")
    owner._fit_tasks = bridge.FitTasks(owner, root, {"X": X}, has_steps=True)
    sent = pickle.loads(pickle.dumps(SubFit(context, owner)))
    assert vars(sent.owner._fit_tasks) == {}  # no rows
    model = RKDAClassifier(PAIR)
    with sent(model):
        model.fit(X, y)
    assert sent.owner.n_ends == 1


def test_scores_of_the_training_rows_are_monitored():
    monitor = sklearn_callback.ScoringMonitor(scoring="accuracy")
    model = SSMKClassifier(PAIR).set_callbacks(monitor).fit(X, y)
    scores = [record["accuracy"] for record in monitor.get_logs().data]
    assert scores == [model.score(X, y)]


@pytest.mark.filterwarnings("ignore:.*")
def test_a_bar_of_scikit_learn_is_shown(capsys):
    pytest.importorskip("rich")
    own_weights().set_callbacks(sklearn_callback.ProgressBar()).fit(X, CLASSES)
    shown = capsys.readouterr().out
    for line in ("MKLClassifier - fit", "MKLClassifier - solve #1", "MKLClassifier - problem #2"):
        assert line in shown
    assert "100%" in shown


def test_warnings_name_the_line_that_called():
    with pytest.warns(ConvergenceWarning) as caught:
        MKLClassifier(PAIR, C=1.0, weighting="learned", max_iter=1, tol=1e-12).set_callbacks(Recorder()).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_callback_that_is_no_function_is_refused_all_the_same():
    with pytest.raises(ValueError, match="callback"):
        MKLClassifier(PAIR, callback=3).set_callbacks(Recorder()).fit(X, y)


def test_a_fit_that_calls_that_of_its_parent_has_one_tree():
    class Named(MKLClassifier):
        def fit(self, X, y):
            return super().fit(X, y)

    recorder = Recorder()
    Named(PAIR, C=1.0).set_callbacks(recorder).fit(X, y)
    assert [context.task_name for context, _ in recorder.tasks()].count("fit") == 1


def test_a_fit_without_callbacks_is_the_plain_one(monkeypatch):
    monkeypatch.setattr(bridge.FitTasks, "__init__", None)  # would fail
    RKDAClassifier(PAIR).fit(X, y)


def test_before_scikit_learn_1_9_fits_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(bridge, "with_callbacks", None)
    assert with_tasks(MKLClassifier.fit) is MKLClassifier.fit


def test_a_search_that_nobody_follows_has_the_users_callback():
    asked, open_task = open_search(print, 3)
    assert asked is print
    assert open_task is no_task
    with warnings.catch_warnings(), open_task("a fit")(SVM):
        pass
