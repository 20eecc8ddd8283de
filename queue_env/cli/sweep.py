"""The command `sweep`: policies over other loads, numbers of servers, sizes or parameters, as table and figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queue_env.cli import options
from queue_env.cli.inputs import check_out, check_positive, check_seed, check_threads, named_scenario, parse_count
from queue_env.cli.output import json_text, print_tables, write_files

if TYPE_CHECKING:
    from queue_env.scoring.sweep import Sweep

__all__ = ["sweep"]

POINTS = "points"
MOST_AXES = 2
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


def sweep(
    scenario: options.ScenarioName,
    over: options.Over,
    policies: options.SweepPolicies = None,
    measure: options.Measure = "mean_response",
    jobs: options.SweepJobs = "1e6",
    width: options.SweepWidth = None,
    most_jobs: options.SweepMostJobs = None,
    seed: options.Seed = 0,
    servers: options.ScenarioServers = None,
    load: options.ScenarioLoad = None,
    overrides: options.Overrides = None,
    threads: options.Threads = None,
    ray: options.Ray = None,
    out: options.SweepOut = None,
    resume: options.Resume = False,
    as_json: options.Json = False,
) -> None:
    """Measure policies over other values of one or two axes: a table, and lines or heat maps.

    An axis is load, servers, a number of the law of sizes, such as alpha (the mean size stays), or a parameter of
    policies. At a point all policies meet the same jobs; a point does not depend on which others there are.

    Example: queue-env sweep high-load-2 --over load=0.5:0.95:10 --over servers=1,2,4,8 --policy srpt
    --policy dynasplit --measure p99 --out sweep
    """
    check_out(out)
    axes = _axes(over)
    run: dict[str, Any] = {
        "measure": _quantity(measure),
        "jobs": parse_count("--jobs", jobs),
        "seed": check_seed(seed),
        "threads": check_threads(threads),
        "ray": ray,
    }
    run |= _of_scores(run["measure"], width, most_jobs)
    if out is not None:
        run["checkpoint"] = _points_directory(out, resume)
    elif resume:
        raise ValueError("--resume needs --out, the directory with the points to go on from")
    model = named_scenario(scenario, {"servers": servers, "load": load}, overrides or ())
    from queue_env.scoring.sweep import sweep as run_sweep

    try:
        found = run_sweep(model, list(dict.fromkeys(policies or ["srpt"])), axes, **run)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept(out)) from None
    _report(model.name, found, run["jobs"], out, as_json)


def _axes(texts: Sequence[str]) -> dict[str, list[str]]:
    from queue_env.cli.grids import parse_grid

    grids = [parse_grid(text, "--over") for text in texts]
    axes = dict(grids)
    if len(axes) < len(grids):
        raise ValueError(f"--over must name each axis once, got {', '.join(name for name, _ in grids)}")
    if len(axes) > MOST_AXES:
        raise ValueError(f"--over must be given once or twice, got {len(axes)} axes: {', '.join(axes)}")
    return axes


def _quantity(measure: str) -> str:
    """The quantity that a measure names: p99.9 is quantile:0.999."""
    percentile = _PERCENTILE.fullmatch(measure)
    return measure if percentile is None else f"quantile:{float(percentile[1]) / 100:.12g}"


def _of_scores(measure: str, width: float | None, most_jobs: str | None) -> dict[str, Any]:
    """The arguments that only scores have, where they are given."""
    for option, value in (("--width", width), ("--most-jobs", most_jobs)):
        if value is not None and measure != "score":
            raise ValueError(f"{option} goes with --measure score, not with {measure}, got {value!r}")
    given: dict[str, Any] = {} if width is None else {"rel_half_width": check_positive("--width", width)}
    return given if most_jobs is None else given | {"most_jobs": parse_count("--most-jobs", most_jobs)}


def _points_directory(out: Path, resume: bool) -> Path:
    """Where finished points are kept.

    Raises:
        ValueError: there are some, which are not to be gone on from.
    """
    directory = out / POINTS
    if not resume and directory.is_dir() and any(directory.iterdir()):
        raise ValueError(f"--out has points of a sweep in {directory}: --resume goes on from them, or name another")
    return directory


def _kept(out: Path | None) -> str:
    if out is None:
        return "nothing was kept; --out keeps finished points"
    count = sum(1 for _ in (out / POINTS).glob("*.json"))
    return f"{count} points are kept in {out / POINTS}; the same command with --resume goes on from them"


def _report(name: str, found: Sweep, jobs: int, out: Path | None, as_json: bool) -> None:
    from queue_env.report import markdown, sweep_csv, sweep_figure, sweep_table

    axes = " and ".join(f"{axis} ({len(values)} value{'s' * (len(values) > 1)})" for axis, values in found.axes.items())
    title = f"{name} over {axes}; {jobs:,} jobs a point, seed {found.seed}"
    table = sweep_table(found)
    document = json_text(
        "sweep",
        scenario=found.scenario,
        measure=found.measure,
        axes=found.axes,
        policies=found.policies,
        jobs=jobs,
        seed=found.seed,
        rows=found.to_list(),
    )
    if out is not None:
        figure = sweep_figure(found, title)
        texts = {
            "sweep.json": document + "\n",
            "table.csv": sweep_csv(found),
            "table.md": f"{title}\n\n{markdown(table)}",
        }
        write_files(out, texts, {"sweep.png": figure, "sweep.svg": figure})
    if as_json:
        typer.echo(document)
        return
    print_tables([table], title)
    for note in _notes(found):
        typer.echo(f"note: {note}")


def _notes(found: Sweep) -> list[str]:
    """What has to be said besides the numbers."""
    notes = []
    for index, policy in enumerate(found.policies):
        rows = [row[index] for row in found.found]
        present = sum(row.present > 0 for row in rows)
        if present:
            notes.append(f"{policy}: at {present} points counted jobs are still present at the end, and in no number")
        short = sum(not row.reached for row in rows)
        if short:
            notes.append(f"{policy}: at {short} points the intervals are wider than was asked for")
    return notes
