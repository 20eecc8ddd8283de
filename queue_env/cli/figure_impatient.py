"""The commands that draw figures of many servers with impatient jobs: `figure impatient-waiting` and so on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queue_env.cli import options
from queue_env.cli.inputs import check_figure, check_threads, parse_count
from queue_env.cli.output import json_text, print_tables, write_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.report import Table
    from queue_env.scoring.impatient_runs import Runs

__all__ = ["COMMANDS"]

_LOAD, _JOBS = 1.4, "4e6"

_Made = tuple["Figure", str, "list[Table]"]
"""A figure, what it shows as CSV, and as tables."""


def _curves(name: str, runs: Runs) -> _Made:
    from queue_env.report import curves_csv, curves_figure, curves_tables
    from queue_env.scoring.impatient_curves import impatient_curves

    panels = impatient_curves(name, runs)
    title = f"Overloaded servers with impatient jobs, load {runs.load:g}: limits of many servers, and simulated systems"
    return curves_figure(panels, title), curves_csv(panels), curves_tables(panels)


def _collapse(_: str, runs: Runs) -> _Made:
    from queue_env.report import sizes_csv, sizes_figure, sizes_tables
    from queue_env.scoring.impatient_sizes import served_by_size

    panels = served_by_size(runs)
    title = f"Which sizes are served, load {runs.load:g}: with more servers, SRPT serves sizes up to τ and no others"
    return sizes_figure(panels, title), sizes_csv(panels), sizes_tables(panels)


def _crossing(_: str, runs: Runs) -> _Made:
    from queue_env.report import crossing_csv, crossing_figure, crossing_table
    from queue_env.scoring.impatient_crossing import impatient_crossing

    data = impatient_crossing(runs)
    title = f"Where FCFS and SRPT wait equally long, load {runs.load:g}, all means 1"
    return crossing_figure(data, title), crossing_csv(data), [crossing_table(data)]


_KINDS: dict[str, tuple[Callable[[str, Runs], _Made], str]] = {
    "impatient-waiting": (
        _curves,
        "Draw mean waiting against the shape of the patience: fcfs, lcfs and srpt, Weibull and Pareto patience.",
    ),
    "impatient-throughput": (
        _curves,
        "Draw throughput against the shape of the service: fcfs, lcfs and srpt, Weibull and Pareto service.",
    ),
    "impatient-service": (
        _curves,
        "Draw mean waiting against the shape of Weibull service: patience of decreasing and of constant hazard.",
    ),
    "impatient-collapse": (
        _collapse,
        "Draw the share of jobs that srpt serves, by their size, for growing numbers of servers: it tends to a step.",
    ),
    "impatient-crossing": (
        _crossing,
        "Draw for which Weibull patience and service fcfs has a smaller mean waiting than srpt.",
    ),
}


def _command(name: str) -> Callable[..., None]:
    def command(
        servers: options.ImpatientServers = None,
        load: options.ImpatientLoad = _LOAD,
        jobs: options.ImpatientJobs = _JOBS,
        seed: options.Seed = 0,
        threads: options.Threads = None,
        checkpoint: options.CheckpointDirectory = None,
        out: options.ImpatientOut = None,
        as_json: options.Json = False,
    ) -> None:
        from queue_env.scoring.impatient_runs import DEFAULT_SERVERS, Runs

        place = out or Path(f"{name}.png")
        count, threads = parse_count("--jobs", jobs), check_threads(threads)
        check_figure(place, checkpoint)
        numbers: Sequence[int] = servers or DEFAULT_SERVERS
        runs = Runs(load=load, servers=numbers, jobs=count, seed=seed, threads=threads, checkpoint=checkpoint)
        if checkpoint is not None:
            checkpoint.mkdir(parents=True, exist_ok=True)
        drawn, points, tables = _KINDS[name][0](name, runs)
        write_files(place.parent, {place.with_suffix(".csv").name: points}, {place.name: drawn})
        if as_json:
            typer.echo(json_text(f"figure {name}", load=load, jobs=count, seed=seed, points=_rows(points)))
        else:
            print_tables(tables)

    command.__doc__ = f"""{_KINDS[name][1]}

    Curves are limits of many servers, points and bands are simulated, with 95 % intervals. All means are 1.

    Example: queue-env figure {name} --servers 50 --servers 200 --jobs 1e6
    """
    return command


def _rows(points: str) -> list[dict[str, Any]]:
    """The rows of CSV as mappings, with numbers where they are, and None where there is nothing."""
    import csv

    def value(text: str) -> Any:
        try:
            return (int(text) if text.isdecimal() else float(text)) if text else None
        except ValueError:
            return text

    return [{key: value(text) for key, text in row.items()} for row in csv.DictReader(points.splitlines())]


COMMANDS = {name: _command(name) for name in _KINDS}
"""The commands by name."""
