"""A table as rows of cells, its forms for terminal, Markdown and CSV, and files that are never half there."""

from __future__ import annotations

import csv
import html
import io
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from queue_env.tail import Interval

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["Cell", "Table", "atomic_file", "csv_text", "html_table", "markdown", "rich_table"]

LONG = 1e9
"""Numbers from here on are shown with an exponent."""

ROUNDING = 1e-9
"""Half-widths up to so much of the value are errors of rounding, and are not shown."""

Cell: TypeAlias = str | float | Interval | None


@dataclass(frozen=True)
class Table:
    """Rows of cells under titles.

    Attributes:
        title: what the table shows, for people.
        columns: titles of the columns; the first names the rows.
        rows: cells; a number, an interval, a text, or None where there is nothing to say.
        group: put before the titles of the columns in CSV, where several tables share one line.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    group: str = ""


def rich_table(table: Table) -> Group:
    """The table for a terminal, under its title."""
    from rich import box
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD)
    for index, column in enumerate(table.columns):
        numeric = any(not isinstance(row[index], str | None) for row in table.rows)
        # Where the terminal is narrow, texts are folded before names and numbers, and nothing is cut off.
        firm = max((len(_text(row[index])) for row in table.rows), default=0) if numeric or index == 0 else None
        shown.add_column(Text(column), justify="right" if numeric else "left", overflow="fold", min_width=firm)
    for row in table.rows:
        shown.add_row(*(Text(_text(cell)) for cell in row))
    return Group(Text(table.title, style="bold"), shown)  # Text, since markup would swallow brackets


def markdown(table: Table) -> str:
    """The table in GitHub's Markdown, under its title."""
    lines = [list(table.columns), ["---"] * len(table.columns)]
    lines += [[_text(cell).replace("|", "\\|") for cell in row] for row in table.rows]
    return f"**{table.title}**\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def html_table(table: Table) -> str:
    """The table in HTML, under its title."""
    lines = [("th", table.columns), *(("td", [_text(cell) for cell in row]) for row in table.rows)]
    rows = ["".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts) for tag, texts in lines]
    return f"<table><caption>{html.escape(table.title)}</caption><tr>{'</tr><tr>'.join(rows)}</tr></table>"


def csv_text(tables: Sequence[Table]) -> str:
    """All tables side by side as CSV: a line for each name in their first columns, numbers with all digits.

    A column with intervals becomes three: the value, `... low` and `... high`.
    """
    lines: dict[str, dict[str, Cell]] = {}
    header = [tables[0].columns[0]]
    for table in tables:
        for index, column in list(enumerate(table.columns))[1:]:
            cells = [row[index] for row in table.rows]
            ends = ("", " low", " high") if any(isinstance(cell, Interval) for cell in cells) else ("",)
            titles = [f"{table.group} {column}{end}".strip() for end in ends]
            header += titles
            for row, cell in zip(table.rows, cells, strict=True):
                numbers = cell if isinstance(cell, Interval) else (cell,)
                lines.setdefault(str(row[0]), {}).update(zip(titles, numbers, strict=False))
    text = io.StringIO()
    writer = csv.DictWriter(text, header, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({header[0]: name, **line} for name, line in lines.items())
    return text.getvalue()


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place when all is written, and vanishes on an error."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            yield file
        os.chmod(name, 0o644)  # mkstemp lets only the owner read
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Interval):
        return _interval_text(cell)
    return cell if isinstance(cell, str) else _number_text(cell)


def _number_text(number: float) -> str:
    """Four digits, but all that are before the point where that is short."""
    return f"{number:,.0f}" if 1000 <= abs(number) < LONG else f"{number:.4g}"


def _interval_text(interval: Interval) -> str:
    """The value and the half-width, rounded to two digits of the half-width."""
    value, half_width = interval.value, interval.half_width
    if not (math.isfinite(half_width) and half_width > ROUNDING * abs(value)):
        return _number_text(value)
    decimals = 1 - math.floor(math.log10(half_width))
    if max(abs(value), half_width) >= LONG or decimals > 6:
        return f"{value:.3g} ± {half_width:.2g}"
    return f"{value:,.{max(decimals, 0)}f} ± {half_width:,.{max(decimals, 0)}f}"
