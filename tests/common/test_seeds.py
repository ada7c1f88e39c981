"""The same seed gives the same bits, for any number of jobs."""

import numpy as np
import pytest
from common.estimators import cases, having, outputs, sample


@cases(variants=True)
def test_the_same_seed_gives_the_same_bits(case):
    X, y = sample(case)
    first, second = (case.model(**case.draws).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(outputs(first, X), outputs(second, X))
    np.testing.assert_array_equal(first.objective_, second.objective_)
    assert first.certificate_ == second.certificate_


@cases()
def test_a_generator_as_seed_is_as_good_as_a_number(case):
    X, y = sample(case)
    seeds = [np.random.RandomState(3) for _ in range(2)]
    first, second = (case.model(**case.draws).set_params(random_state=seed).fit(X, y) for seed in seeds)
    np.testing.assert_array_equal(outputs(first, X), outputs(second, X))


@cases(variants=True, where=having("n_jobs"))
def test_the_number_of_jobs_changes_no_bit(case):
    X, y = sample(case, n_classes=case.max_classes)
    models = [case.model(n_jobs=n, **case.draws).fit(X, y) for n in (None, 2)]
    np.testing.assert_array_equal(outputs(models[0], X), outputs(models[1], X))
    np.testing.assert_array_equal(models[0].objective_, models[1].objective_)


@cases(where=having("n_jobs"))
@pytest.mark.parametrize("n_jobs", [1.5, "a"])
def test_a_number_of_jobs_that_is_none_is_refused(case, n_jobs):
    with pytest.raises(ValueError, match=f"{case.name} got n_jobs={n_jobs!r}; expected None or a whole number"):
        case.model(n_jobs=n_jobs).fit(*sample(case))
