"""A cluster that runs one function over many items: this process, processes of this computer, or many computers.

A worker that dies loses nothing: its items are given to the others. A scheduler that is lost, stopped or without
workers ends the work with one error, after half a minute, or five minutes without workers: nothing waits forever.
"""

from __future__ import annotations

import importlib
import logging
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from ..errors import ErrorCode, KernelweaveError

Item = TypeVar("Item")
Result = TypeVar("Result")

CONNECT_SECONDS = 20.0  # for a scheduler to answer
POLL_SECONDS = 5.0  # without a result, after which the scheduler is asked whether it is there
ANSWER_SECONDS = 20.0  # for its answer
RESULT_SECONDS = 60.0  # to fetch a result that is ready
WORKERLESS_SECONDS = 300.0  # without any worker: clusters that grow with their work start some only now
CLOSE_SECONDS = 5.0
ITEMS_PER_THREAD = 3  # handed out at a time: no worker waits, and the scheduler holds few of many items


@dataclass(frozen=True, eq=False)
class Cluster:
    """A client of Dask, and the address of the scheduler, which a client that has lost it forgets."""

    client: Any
    address: str


@contextmanager
def open_cluster(address: str | None = None, n_workers: int | None = None) -> Iterator[Cluster | None]:
    """Give a cluster to be used with :func:`run_each`; None stands for this process.

    Parameters
    ----------
    address : str, optional
        Of a scheduler that runs already, such as ``tcp://10.0.0.1:8786``.
    n_workers : int, optional
        Processes to start on this computer, each with one thread and its share of the memory.
    """
    if address is None and n_workers is None:
        yield None
        return
    distributed = require_dask("distributed")
    with _quiet_logs():
        if address is not None:
            with _connect(distributed, address) as cluster:
                yield cluster
            return
        with ExitStack() as stack:
            with _hold_interrupts():  # Ctrl-C is for this process, which ends the others
                local = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=n_workers,
                        threads_per_worker=1,
                        memory_limit=distributed.system.MEMORY_LIMIT // n_workers,
                        dashboard_address="127.0.0.1:0",  # any free port; the default one may be another cluster's
                        silence_logs=logging.CRITICAL,
                    )
                )
            yield stack.enter_context(_connect(distributed, local.scheduler_address))


def run_each(
    cluster: Cluster | None, function: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[tuple[int, Result]]:
    """Yield the number of each item and the function's result for it, in the order in which they are finished.

    What the function raises is raised here, and the items that are left are given up.

    Parameters
    ----------
    cluster : Cluster or None
        Of :func:`open_cluster`.
    function : callable
        Of a module that workers can import. Where a worker dies it is called again, so it may be called twice.
    items : sequence
    """
    if cluster is None:
        yield from ((number, function(item)) for number, item in enumerate(items))
        return
    waiting, running = deque(enumerate(items)), dict[Any, int]()
    try:
        while waiting or running:
            _hand_out(cluster, function, waiting, running)
            for future in _wait_for_some(cluster, list(running)):
                number = running.pop(future)
                yield number, _read_result(cluster, future)
    finally:
        for future in running:
            future.release()


def require_dask(module: str) -> Any:
    """Import a module of dask, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise KernelweaveError(
            "Work on several processes or computers needs dask: pip install 'kernelweave[dask]'", ErrorCode.UNSUPPORTED
        ) from None


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Hold back interrupts until the end; threads and processes that are started meanwhile never get any."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would let interrupts in again when the first process starts it
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


@contextmanager
def _connect(distributed: Any, address: str) -> Iterator[Cluster]:
    """Give a client of the scheduler at an address; refuse one that does not answer."""
    addressing = require_dask("distributed.comm.addressing")
    try:  # before a client, which would try to close for long
        addressing.get_address_host_port(addressing.normalize_address(address), strict=True)
    except ValueError as error:
        message = f"'{address}' is not the address of a scheduler of Dask, such as tcp://10.0.0.1:8786: {error}."
        raise KernelweaveError(message, ErrorCode.NO_CLUSTER) from None
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError:
        raise KernelweaveError(
            f"No scheduler of Dask answers at {address}. Start one with `dask scheduler`, which prints its address.",
            ErrorCode.NO_CLUSTER,
        ) from None
    try:
        yield Cluster(client, address)
    finally:
        with suppress(OSError, CancelledError, RuntimeError):
            client.close(timeout=CLOSE_SECONDS)


def _hand_out(cluster: Cluster, function: Any, waiting: deque[tuple[int, Any]], running: dict[Any, int]) -> None:
    """Submit items as long as few are running."""
    if not waiting:
        return
    n_at_once = ITEMS_PER_THREAD * max(1, sum(worker["nthreads"] for worker in _list_workers(cluster)))
    while waiting and len(running) < n_at_once:
        number, item = waiting.popleft()
        running[cluster.client.submit(function, item, pure=False)] = number


def _wait_for_some(cluster: Cluster, futures: list[Any]) -> set[Any]:
    """Return those that are finished, at least one; refuse to wait for a scheduler that is gone or has no workers."""
    distributed = require_dask("distributed")
    last_seen = time.monotonic()
    while True:
        try:
            with cluster.client.as_current():
                return distributed.wait(futures, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED").done
        except CancelledError:
            raise _lost(cluster) from None
        except TimeoutError:
            pass
        if _list_workers(cluster):
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > WORKERLESS_SECONDS:
            raise KernelweaveError(
                f"The cluster at {cluster.address} has no workers. Start some with `dask worker {cluster.address}`.",
                ErrorCode.NO_CLUSTER,
            )


def _list_workers(cluster: Cluster) -> list[dict[str, Any]]:
    """Ask the scheduler for its workers; calls of the client itself would wait for an answer without end."""
    client = cluster.client
    if client.scheduler is None:  # the client has given up
        raise _lost(cluster)
    try:
        identity = client.sync(client.scheduler.identity, callback_timeout=ANSWER_SECONDS)
    except (OSError, CancelledError):  # TimeoutError is an OSError
        raise _lost(cluster) from None
    return list(identity["workers"].values())


def _read_result(cluster: Cluster, future: Any) -> Any:
    """Return the result of a function; say in plain words if workers died of it, or cannot run it."""
    distributed = require_dask("distributed")
    try:
        return future.result(timeout=RESULT_SECONDS)
    except (CancelledError, TimeoutError):
        raise _lost(cluster) from None
    except distributed.KilledWorker as error:
        raise KernelweaveError(
            f"{error.allowed_failures + 1} workers died of the same item, most likely for lack of memory. Give workers "
            "more memory (fewer of them on one computer), or cut the files into smaller ones.",
            ErrorCode.NO_CLUSTER,
        ) from None
    except (ImportError, RuntimeError) as error:
        missing = error if isinstance(error, ImportError) else error.__cause__  # a scheduler wraps its own
        if not isinstance(missing, ImportError):
            raise
        raise KernelweaveError(
            f"The scheduler or a worker at {cluster.address} has no module {missing.name!r}: install there what is "
            "installed here, in the same versions.",
            ErrorCode.NO_CLUSTER,
        ) from None


def _lost(cluster: Cluster) -> KernelweaveError:
    return KernelweaveError(
        f"The scheduler of Dask at {cluster.address} was lost: it ended, or does not answer any more.",
        ErrorCode.NO_CLUSTER,
    )


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep what Dask logs about lost connections to itself: an error says it in one sentence."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in ("distributed", "tornado")]
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
