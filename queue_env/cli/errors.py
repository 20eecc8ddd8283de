"""How commands end when something goes wrong, or when they are interrupted."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, Self

import typer

__all__ = ["INTERRUPTED", "WRONG_INPUT", "Interrupts", "reporting_errors"]

P = ParamSpec("P")

WRONG_INPUT = 2
INTERRUPTED = 130


def reporting_errors(command: Callable[P, None]) -> Callable[P, None]:
    """The command with a line on stderr and an exit code in place of a traceback, for what users can mend."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:
            raise
        except (ValueError, ImportError, OSError) as error:
            typer.echo(f"error: {_one_line(error)}", err=True)
            raise typer.Exit(WRONG_INPUT) from error
        except KeyboardInterrupt as error:
            typer.echo(f"interrupted: {str(error) or 'nothing was kept'}", err=True)
            raise typer.Exit(INTERRUPTED) from error

    return run


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


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
