"""A progress bar for long runs, on a terminal's standard error only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["DELAY", "Advance", "job_progress"]


class Advance(Protocol):
    """Tells a bar what is done."""

    def __call__(self, jobs: int, total: float | None = None) -> None:
        """Count further jobs, from any thread; and say how many there will be in all, where that has changed."""


DELAY = 2.0
"""Seconds after which the bar appears: shorter runs stay silent."""


@contextmanager
def job_progress(
    total: int | None, description: str, enabled: bool | None = None, unit: str = "jobs"
) -> Iterator[Advance]:
    """Show how far a run is, how many jobs it simulates a second and how long it will take.

    Standard output is left alone. The bar stays after the run, also after one that was interrupted.

    Args:
        total: jobs to simulate, >= 0; None where that is not known, for a bar without an end.
        description: the text in front of the bar.
        enabled: None: only if standard error is a terminal. True: always, though what is not a terminal only
            gets the last state. False: never.
        unit: what is counted, if not jobs.

    Yields:
        `advance(n)`, to be called after each further n jobs.

    Raises:
        ValueError: total is negative.
    """
    if total is not None and total < 0:
        raise ValueError(f"job_progress: total must be >= 0 or None, got {total!r}")
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield _ignore
        return
    progress = _bar(unit)
    task = progress.add_task(description, total=total)
    appear = threading.Timer(DELAY, progress.start)
    appear.daemon = True
    appear.start()
    try:
        yield lambda jobs, total=None: progress.update(task, advance=jobs, total=total)
    finally:
        appear.cancel()
        # A bar that is just appearing must be there before it can be stopped.
        appear.join()
        if progress.live.is_started:
            progress.stop()


def _ignore(jobs: int, total: float | None = None) -> None:
    pass


def _bar(unit: str) -> Progress:
    # rich takes 0.1 s to import, which a script without a bar should not pay.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{_short(speed)} {unit}/s", style="progress.data.speed")

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} " + unit),
        Rate(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        # Else rich would send what the program prints to standard error, around a redirection to a file.
        redirect_stdout=False,
    )


def _short(number: float) -> str:
    """The number to one decimal in millions, thousands or ones, such as 4.2 M."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.1f}"
