import numpy as np

from kernelweave.solvers.columns.masters import MasterSolution, WorkingSet


def working_set(n_columns=4, **options):
    working = WorkingSet(5, **({"centered": False, "idle_rounds": 2} | options))
    K = np.random.default_rng(0).normal(size=(5, n_columns))
    working.append(np.arange(n_columns), K)
    return working, K


def idle_for(working, n_rounds, used=()):
    for _ in range(n_rounds):
        working.note_use(np.isin(working.columns, used).astype(float))


def test_a_solution_without_a_margin_to_choose_has_none():
    assert MasterSolution(0.0, np.zeros(1), 0.0, np.zeros(1), 0.0, np.zeros(1)).rho == 0.0


def test_columns_are_kept_as_they_came():
    working, K = working_set()
    np.testing.assert_array_equal(working.K, K.T)
    np.testing.assert_array_equal(working.means, 0.0)
    np.testing.assert_array_equal(working.magnitudes, np.abs(K).max(axis=0))


def test_centered_columns_and_their_means_give_the_columns_back():
    working, K = working_set(centered=True)
    np.testing.assert_allclose(working.K.sum(axis=1), 0.0, atol=1e-15)
    np.testing.assert_allclose(working.K.T + working.means, K)


def test_a_column_of_zeros_has_a_magnitude_to_divide_by():
    working, _ = working_set()
    _, magnitudes = working.append(np.array([9]), np.zeros((5, 1)))
    assert magnitudes == [1.0]


def test_only_columns_that_are_idle_and_slack_are_dropped():
    working, K = working_set()
    idle_for(working, 2, used=[0])
    out = working.drop_idle(slack=np.array([True, True, False, True]))
    np.testing.assert_array_equal(out, [1, 3])
    np.testing.assert_array_equal(working.columns, [0, 2])
    np.testing.assert_array_equal(working.K, K.T[[0, 2]])


def test_use_starts_the_count_again():
    working, _ = working_set()
    idle_for(working, 1)
    idle_for(working, 1, used=[0, 1, 2, 3])
    idle_for(working, 1)
    assert len(working.drop_idle(np.ones(4, dtype=bool))) == 0


def test_a_column_that_came_back_stays_until_the_problem_changes():
    working, K = working_set()
    idle_for(working, 2, used=[0, 1, 2])
    working.drop_idle(np.ones(4, dtype=bool))
    working.append(np.array([3]), K[:, 3:])
    idle_for(working, 5, used=[0, 1, 2])
    assert len(working.drop_idle(np.ones(4, dtype=bool))) == 0
    working.restart()
    idle_for(working, 2, used=[0, 1, 2])
    np.testing.assert_array_equal(working.drop_idle(np.ones(4, dtype=bool)), [3])


def test_nothing_is_dropped_where_that_is_not_wanted():
    working, _ = working_set(idle_rounds=None)
    idle_for(working, 100)
    assert len(working.drop_idle(np.ones(4, dtype=bool))) == 0


def test_the_numbers_of_the_columns_are_a_new_array_after_each_change():
    working, K = working_set()
    before = working.columns
    working.append(np.array([9]), K[:, :1])
    np.testing.assert_array_equal(before, [0, 1, 2, 3])
