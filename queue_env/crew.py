"""Threads that look out for their share of the work, and are woken when they have gone to sleep over it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

__all__ = ["Crew"]

_LONGEST_REST = 15  # calls


class Crew:
    """Threads beside the caller's, which end with the object.

    Args:
        parts: what each of them does when it is woken, until it finds no more work; returns how much it has done. A
            part must not hold on to the object that has the crew.
        leave: makes the parts return soon, whatever they are at.
    """

    def __init__(self, parts: Sequence[Callable[[], int]], leave: Callable[[], Any]) -> None:
        self._asleep, self._vain = [True] * len(parts), [0] * len(parts)
        self._rest = [0] * len(parts)
        self._calls: list[SimpleQueue[bool]] = [SimpleQueue() for _ in parts]
        self._threads = [
            Thread(target=_work, args=(part, i, self._asleep, self._vain, calls), name="queue-env", daemon=True)
            for i, (part, calls) in enumerate(zip(parts, self._calls, strict=True))
        ]
        for thread in self._threads:
            thread.start()
        self._dismiss = weakref.finalize(self, _dismiss, self._calls, leave)
        self._process = os.getpid()

    def wake(self) -> None:
        """Let those that sleep look for work again; who has found none several times on end is let alone for a while.

        That is so where steps are over before it is awake, and where it has no processor to itself.
        """
        for i, asleep in enumerate(self._asleep):
            if asleep and self._rest[i] > 0:
                self._rest[i] -= 1
            elif asleep:
                self._rest[i] = min(2 ** self._vain[i] - 1, _LONGEST_REST)
                self._asleep[i] = False
                self._calls[i].put(True)

    @property
    def here(self) -> bool:
        """Whether the threads are in this process; in one that has been forked off there are none."""
        return os.getpid() == self._process

    def dismiss(self) -> None:
        """End the threads; when this returns, they have ended."""
        self._dismiss()
        for thread in self._threads:
            thread.join()


def _work(part: Callable[[], int], i: int, asleep: list[bool], vain: list[int], calls: SimpleQueue[bool]) -> None:
    while calls.get():
        vain[i] = 0 if part() > 0 else min(vain[i] + 1, _LONGEST_REST)
        asleep[i] = True


def _dismiss(queues: list[SimpleQueue[bool]], leave: Callable[[], Any]) -> None:
    for calls in queues:
        calls.put(False)
    leave()
