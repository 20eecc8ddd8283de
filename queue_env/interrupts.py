"""Whether there has been an interrupt, for what runs one thing after the other."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

__all__ = ["Interrupts"]


class Interrupts:
    """Takes note of interrupts, which raise KeyboardInterrupt as ever.

    A run that keeps what it has swallows the exception; a command that starts one run after the other has to know.

    Attributes:
        seen: whether there has been one.
    """

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None

    def __enter__(self) -> Self:
        # Where interrupts are ignored (in the background) they stay so; only the main thread gets them.
        before = signal.getsignal(signal.SIGINT)
        if callable(before) and threading.current_thread() is threading.main_thread():
            self._before = before
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        self._before(number, frame)
