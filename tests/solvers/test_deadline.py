import pytest

from kernelweave.solvers import deadline
from kernelweave.solvers.deadline import NO_DEADLINE, Deadline, OutOfTimeError


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [100.0]
    monkeypatch.setattr(deadline.time, "perf_counter", lambda: now[0])
    return now


def test_time_runs_from_when_it_is_made(clock):
    limit = Deadline(10.0)
    clock[0] = 104.0
    assert limit.left == 6.0
    assert not limit.is_over
    clock[0] = 110.0
    assert limit.left == 0.0
    assert limit.is_over


def test_a_part_ends_earlier_and_has_the_same_start(clock):
    limit = Deadline(10.0)
    clock[0] = 103.0
    part = limit.part(0.5)
    assert part.left == 2.0
    assert limit.left == 7.0


def test_what_is_not_done_in_time_is_named(clock):
    limit = Deadline(10.0)
    limit.check("anything was done")
    clock[0] = 111.0
    with pytest.raises(OutOfTimeError, match=r"max_time=10 s was over before anything was done: nothing can be pred"):
        limit.check("anything was done")


def test_without_a_limit_it_is_never_over():
    assert NO_DEADLINE.left == float("inf")
    assert NO_DEADLINE.part(0.5) is NO_DEADLINE
    NO_DEADLINE.check("anything was done")
