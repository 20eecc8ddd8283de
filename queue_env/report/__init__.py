"""What a comparison of policies looks like: its tables, and the figure of tails."""

from queue_env.report.figure import require_matplotlib, tail_figure
from queue_env.report.results import (
    difference_table,
    headline,
    paired_differences,
    result_tables,
    speed,
)
from queue_env.report.table import Table, atomic_file, csv_text, markdown, rich_table

__all__ = [
    "Table",
    "atomic_file",
    "csv_text",
    "difference_table",
    "headline",
    "markdown",
    "paired_differences",
    "require_matplotlib",
    "result_tables",
    "rich_table",
    "speed",
    "tail_figure",
]
