"""Functions run on a Ray cluster, behind the interface of `concurrent.futures`; all that imports Ray."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Executor, Future
from contextlib import contextmanager, redirect_stdout
from functools import partial
from typing import Any

from queue_env.distributions.checks import refuse

__all__ = ["RayPool", "check_cluster", "connected"]

AUTO = "auto"
_PATIENCE = 10.0  # seconds in which a head must answer
_AGAIN = 1.0  # seconds after which what has not ended is cancelled again
_RETRIES = 20  # of a task whose worker or node is gone; more, and the task itself is likely to be what ends them


def check_cluster(ray: bool | str) -> None:
    """Raise what `connected` would, as far as it can be known without connecting.

    Raises:
        ValueError: it is neither True nor an address.
        ImportError: Ray is not installed.
    """
    address = ray if isinstance(ray, str) else AUTO
    if not isinstance(ray, bool | str) or not (address in (AUTO, "local") or ":" in address):
        refuse("ray", "address", "True, 'auto', 'local', HOST:PORT or ray://HOST:PORT", ray)
    try:
        import ray as _  # noqa: F401
    except ImportError as error:
        raise ImportError("a cluster needs Ray: install queue-env[ray]") from error


@contextmanager
def connected(ray: bool | str) -> Iterator[None]:
    """Connect to a cluster, and leave it afterwards; a connection that is there already is used, and kept.

    Args:
        ray: an address, HOST:PORT; "local" for one on this machine that ends with the connection; True or "auto" for
            the one that runs on this machine or that RAY_ADDRESS names, and if there is none as "local".

    Raises:
        ValueError, ImportError: as `check_cluster`.
        ConnectionError: there is no such cluster.
    """
    check_cluster(ray)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read at import
    import ray as library

    if library.is_initialized():
        yield
        return
    address = None if ray in (True, AUTO) else str(ray)
    _check_reachable(address)
    try:
        library.init(address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError) as error:
        raise ConnectionError(f"there is no Ray cluster at {address}: {error}") from error
    try:
        # Ray prints to standard output that a node is gone, where a command's JSON is to be and nothing else.
        with redirect_stdout(sys.stderr):
            yield
    finally:
        library.shutdown()


def _check_reachable(address: str | None) -> None:
    """Raise ConnectionError where nobody listens, which Ray would try for minutes."""
    host, colon, port = (address or "").rpartition("://")[2].rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ConnectionError(f"there is no Ray cluster at {address}: {error}") from error


class RayPool(Executor):
    """Runs functions on the cluster that this process is connected to, each on one core.

    Functions, arguments and results are pickled, and what they are made of has to be installed on all nodes. A task
    whose worker or node is lost runs again on another.
    """

    def __init__(self) -> None:
        import ray

        self._task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_attempt)
        self._cancel: Callable[[Any], None] = partial(ray.cancel, force=False)
        self._references: dict[Future[Any], Any] = {}

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Start a function; the future raises what it raises, or ConnectionError where it was lost too often."""
        reference = self._task.remote(function, arguments, options)
        future: Future[Any] = Future()
        self._references[future] = reference
        future.add_done_callback(self._cancel_if_asked)
        reference.future().add_done_callback(partial(self._come_back, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for what runs, or cancel it."""
        waiting = list(self._references)
        if cancel_futures:
            for future in waiting:
                future.cancel()
        while wait and (left := futures.wait(waiting, _AGAIN).not_done):
            for future in left:
                self._cancel_if_asked(future)  # an interrupt is lost where it meets a worker between two tasks

    def _cancel_if_asked(self, future: Future[Any]) -> None:
        reference = self._references.get(future)
        if reference is not None and future.cancelled():
            self._cancel(reference)

    def _come_back(self, future: Future[Any], found: Future[Any]) -> None:
        _settle(future, found)
        self._references.pop(future, None)


def _attempt(
    function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Any, Exception | None]:
    """Call a function; what it raises comes back as it is, without what Ray would add to its message."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So it is where Ray was started in the background of a script, and then no cancellation would be heard.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return function(*arguments, **options), None
    except Exception as error:
        return None, error


def _settle(future: Future[Any], found: Future[Any]) -> None:
    """Hand on what has come back from the cluster."""
    if not future.set_running_or_notify_cancel():
        return
    lost = found.exception()
    if lost is not None:
        future.set_exception(ConnectionError(f"a task was lost on the Ray cluster: {lost}"))
        return
    value, error = found.result()
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)
