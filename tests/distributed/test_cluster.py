"""A cluster of two processes; workers and schedulers that die are processes of their own."""

import os
import signal
import subprocess
import sys
import time

import pytest
from checks.dask_processes import run_scheduler

from kernelweave.distributed import cluster
from kernelweave.distributed.cluster import open_cluster, require_dask, run_each
from kernelweave.errors import ErrorCode, KernelweaveError


def square(x):
    return x * x


def process_of(x):
    return os.getpid()


def refuse(x):
    raise KernelweaveError(f"{x} is wrong.", ErrorCode.BAD_TARGET)


def die_once(marker):
    """Kill the worker that runs this, the first time."""
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def die(x):
    os.kill(os.getpid(), signal.SIGKILL)


def nap(seconds):
    time.sleep(seconds)
    return seconds


@pytest.fixture(scope="module")
def client():
    with open_cluster(n_workers=2) as client:
        yield client


def test_without_a_cluster_the_items_are_done_here_one_after_the_other():
    with open_cluster() as client:
        assert list(run_each(client, square, [3, 1, 2])) == [(0, 9), (1, 1), (2, 4)]
        assert [each for _, each in run_each(client, process_of, [0])] == [os.getpid()]


def test_every_item_has_its_result(client):
    assert sorted(run_each(client, square, range(20))) == [(x, x * x) for x in range(20)]
    assert os.getpid() not in {each for _, each in run_each(client, process_of, range(4))}
    assert list(run_each(client, square, [])) == []


def test_an_error_of_the_function_arrives_as_it_was(client):
    with pytest.raises(KernelweaveError, match=r"7 is wrong\.") as caught:
        list(run_each(client, refuse, [7]))
    assert caught.value.code is ErrorCode.BAD_TARGET


def test_what_a_dead_worker_had_is_done_by_another(client, tmp_path):
    ((_, process),) = run_each(client, die_once, [str(tmp_path / "marker")])
    assert process > 0


@pytest.mark.slow
def test_an_item_that_kills_every_worker_is_refused(client):
    with pytest.raises(KernelweaveError, match=r"4 workers died of the same item, most likely for lack of memory"):
        list(run_each(client, die, [0]))


@pytest.mark.parametrize(
    "address, words",
    [
        ("tcp://127.0.0.1:9", "No scheduler of Dask answers at tcp://127.0.0.1:9. Start one with `dask scheduler`"),
        ("localhost", "'localhost' is not the address of a scheduler of Dask, .*: missing port number"),
        ("nonsense://x:1", "'nonsense://x:1' is not the address of a scheduler of Dask, .*: unknown address scheme"),
    ],
)
def test_nobody_at_the_address_is_a_sentence(monkeypatch, address, words):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(KernelweaveError, match=words) as caught, open_cluster(address):
        pass
    assert caught.value.code is ErrorCode.NO_CLUSTER


def test_without_dask_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(KernelweaveError, match=r"needs dask: pip install 'kernelweave\[dask\]'"):
        require_dask("distributed")
    with open_cluster() as client:
        assert list(run_each(client, square, [3])) == [(0, 9)]


INTERRUPTED = """
import time
from kernelweave.distributed.cluster import open_cluster, run_each
if __name__ == "__main__":
    try:
        with open_cluster(n_workers=2) as cluster:
            for number, _ in run_each(cluster, time.sleep, [0.01] * 10_000):
                if number == 0:
                    print("at work", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="the group of processes of a terminal")
def test_an_interrupt_from_the_terminal_is_for_the_caller_alone():
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    program = [sys.executable, "-c", INTERRUPTED]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(program, env=environment, start_new_session=True, **pipes) as process:
        try:
            assert process.stdout.readline() == "at work\n"
            os.killpg(process.pid, signal.SIGINT)
            out, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert out == "interrupted\n"
    assert "Traceback" not in error


@pytest.fixture
def scheduler():
    with run_scheduler() as started:
        yield started


def work_until(address, event):
    """Run something short, let the event happen, and wait for what would take ten minutes more."""
    with open_cluster(address) as client:
        for _, seconds in run_each(client, nap, [0.01, 600.0]):
            assert seconds == 0.01
            event()


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGKILL, id="killed"), pytest.param(signal.SIGSTOP, id="stopped", marks=pytest.mark.slow)],
)
def test_a_lost_scheduler_is_an_error_soon(scheduler, monkeypatch, number):
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.5)
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 1.0)
    address, process, _ = scheduler
    with pytest.raises(KernelweaveError, match=f"The scheduler of Dask at {address} was lost") as caught:
        work_until(address, lambda: process.send_signal(number))
    assert caught.value.code is ErrorCode.NO_CLUSTER


@pytest.mark.slow
def test_a_cluster_whose_workers_are_gone_is_an_error_soon(scheduler, monkeypatch):
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.5)
    monkeypatch.setattr(cluster, "WORKERLESS_SECONDS", 1.0)
    address, _, worker = scheduler
    with pytest.raises(KernelweaveError, match=f"The cluster at {address} has no workers. Start some with"):
        work_until(address, worker.kill)


@pytest.mark.slow
def test_a_scheduler_that_is_lost_between_two_uses_is_an_error_soon(scheduler):
    address, process, _ = scheduler
    with open_cluster(address) as lost:
        process.kill()
        for _ in range(2):
            with pytest.raises(KernelweaveError, match=f"The scheduler of Dask at {address} was lost"):
                list(run_each(lost, square, [1]))
            lost.client.close(timeout=1.0)  # as it does itself when it has given up


@pytest.mark.slow
def test_workers_without_our_modules_are_an_error():
    words = "The scheduler or a worker at .* has no module 'checks': install there what is installed here"
    with run_scheduler(path=[]) as (address, *_), pytest.raises(KernelweaveError, match=words):
        work_until(address, lambda: None)
