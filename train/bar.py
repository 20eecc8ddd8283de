"""A bar that says how far a search is, and how it is doing, on a terminal's standard error only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["Bar", "search_bar"]


class Bar(NamedTuple):
    """What moves the bar on by one, and what changes the text before it."""

    advance: Callable[[], None]
    describe: Callable[[str], None]


@contextmanager
def search_bar(total: int, text: str) -> Iterator[Bar]:
    """Show a bar with the time that is left, if standard error is a terminal.

    Args:
        total: steps.
        text: before the bar, until it is described anew.
    """
    if not sys.stderr.isatty():
        yield Bar(lambda: None, lambda _: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as progress:
        shown = progress.add_task(text, total=total)
        yield Bar(lambda: progress.advance(shown), lambda new: progress.update(shown, description=new))
