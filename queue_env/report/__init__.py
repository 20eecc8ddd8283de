"""What results of policies look like: their tables, and the figures of tails."""

from queue_env.report.curves import joined_tails_csv, joined_tails_figure, score_figure
from queue_env.report.explain import (
    effects_csv,
    effects_table,
    map_csv,
    maps_figure,
    rules_table,
    shares,
    shares_table,
    structure_figure,
)
from queue_env.report.figure import tail_figure
from queue_env.report.frontier import frontier_figure, frontier_table
from queue_env.report.impatient_crossing import crossing_csv, crossing_figure, crossing_table
from queue_env.report.impatient_curves import curves_csv, curves_figure, curves_tables
from queue_env.report.impatient_sizes import sizes_csv, sizes_figure, sizes_tables
from queue_env.report.results import (
    difference_table,
    headline,
    paired_differences,
    result_tables,
    speed,
)
from queue_env.report.scores import scenario_line, score_headline, score_tables
from queue_env.report.style import line_style, require_matplotlib
from queue_env.report.sweep import sweep_csv, sweep_table
from queue_env.report.sweep_figure import sweep_figure
from queue_env.report.table import Table, atomic_file, csv_text, html_table, markdown, rich_table

__all__ = [
    "Table",
    "atomic_file",
    "crossing_csv",
    "crossing_figure",
    "crossing_table",
    "csv_text",
    "curves_csv",
    "curves_figure",
    "curves_tables",
    "difference_table",
    "effects_csv",
    "effects_table",
    "frontier_figure",
    "frontier_table",
    "headline",
    "html_table",
    "joined_tails_csv",
    "joined_tails_figure",
    "line_style",
    "map_csv",
    "maps_figure",
    "markdown",
    "paired_differences",
    "require_matplotlib",
    "result_tables",
    "rich_table",
    "rules_table",
    "scenario_line",
    "score_figure",
    "score_headline",
    "score_tables",
    "shares",
    "shares_table",
    "sizes_csv",
    "sizes_figure",
    "sizes_tables",
    "speed",
    "structure_figure",
    "sweep_csv",
    "sweep_figure",
    "sweep_table",
    "tail_figure",
]
