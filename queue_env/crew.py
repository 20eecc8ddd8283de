"""Threads that wait to do their share of a call, with little to do to set them going."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

__all__ = ["Crew"]

_Task = tuple[Callable[..., int], tuple[Any, ...]]


class Crew:
    """The caller's thread and others beside it, which end with the object.

    Args:
        count: number of threads, with the caller's.
    """

    def __init__(self, count: int) -> None:
        self._results: SimpleQueue[int | BaseException] = SimpleQueue()
        self._tasks: list[SimpleQueue[_Task | None]] = [SimpleQueue() for _ in range(count - 1)]
        for tasks in self._tasks:
            Thread(target=_work, args=(tasks, self._results), name="queue-env", daemon=True).start()
        self._dismiss = weakref.finalize(self, _dismiss, self._tasks)
        self._process = os.getpid()

    def total(self, function: Callable[..., int], *arguments: tuple[Any, ...]) -> int:
        """Call a function in every thread, each with its own arguments; returns the sum of the results."""
        for tasks, own in zip(self._tasks, arguments[1:], strict=True):
            tasks.put((function, own))
        try:
            total = function(*arguments[0])
        finally:  # whatever happens here, nobody goes on before all have ended
            results = [self._results.get() for _ in self._tasks]
        for result in results:
            if isinstance(result, BaseException):
                raise result
            total += result
        return total

    @property
    def here(self) -> bool:
        """Whether the threads are in this process; in one that has been forked off there are none."""
        return os.getpid() == self._process

    def dismiss(self) -> None:
        """End the threads."""
        self._dismiss()


def _work(tasks: SimpleQueue[_Task | None], results: SimpleQueue[int | BaseException]) -> None:
    while (task := tasks.get()) is not None:
        function, arguments = task
        try:
            results.put(function(*arguments))
        except BaseException as error:  # the caller waits for a result
            results.put(error)
        del task, function, arguments  # nothing is kept alive while waiting


def _dismiss(queues: list[SimpleQueue[_Task | None]]) -> None:
    for tasks in queues:
        tasks.put(None)
