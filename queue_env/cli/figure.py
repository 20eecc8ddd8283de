"""The commands that draw figures: `figure tail`, `figure frontier`, and those of `figure_impatient`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queue_env.cli import options
from queue_env.cli.by_policy import estimate_each
from queue_env.cli.errors import reporting_errors
from queue_env.cli.figure_frontier import frontier
from queue_env.cli.figure_impatient import COMMANDS
from queue_env.cli.inputs import (
    check_figure,
    check_positive,
    check_threads,
    named_scenario,
    parse_count,
)
from queue_env.cli.output import write_files
from queue_env.interrupts import Interrupts

if TYPE_CHECKING:
    from queue_env.scenarios import Scenario
    from queue_env.scoring.figure_data import JoinedTail

__all__ = ["figure"]

DEFAULT_SCENARIOS = ("high-load-2", "high-load-4")
DEFAULT_POLICIES = (
    "srpt",
    "split",
    "thresh-split",
    "dynasplit",
    "dynasplit:margin=power",
    "dynasplit:margin=constant",
    "backlog-split",
    "super-server",
)

figure = typer.Typer(no_args_is_help=True, help="Draw a figure, and write what it shows as CSV.")


def tail(
    scenarios: options.FigureScenarios = None,
    policies: options.FigurePolicies = None,
    t_max: options.TMax = 1e6,
    width: options.FigureWidth = 0.1,
    jobs: options.PlainJobs = "1e7",
    most_jobs: options.MostJobs = "1e10",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    checkpoint: options.CheckpointDirectory = None,
    out: options.FigureOut = Path("tail.png"),
) -> None:
    """Draw the normalised tail of response time far out: a panel for each scenario, 95 % bands.

    Lines are of a plain run, as far as at least 1000 of its jobs lie beyond; points beyond are of the largest-job
    decomposition. A tail that has reached a hundred times the bound is not followed.

    Example: queue-env figure tail --scenario high-load-2 --policy srpt --policy dynasplit --t-max 1e4
    """
    run: dict[str, Any] = {
        "t_max": check_positive("--t-max", t_max),
        "rel_half_width": check_positive("--width", width),
        "plain_jobs": parse_count("--jobs", jobs),
        "most_jobs": parse_count("--most-jobs", most_jobs),
        "seed": seed,
        "threads": check_threads(threads),
    }
    check_figure(out, checkpoint)
    names = list(dict.fromkeys(scenarios or DEFAULT_SCENARIOS))
    wanted = {name: _wanted(name, policies or DEFAULT_POLICIES, run) for name in names}
    if checkpoint is not None:
        checkpoint.mkdir(parents=True, exist_ok=True)
    with Interrupts() as interrupts:
        tails = {name: _joined(*wanted[name], run, checkpoint, interrupts) for name in names}
    _draw({name: wanted[name][0] for name in names}, tails, out)


def _wanted(name: str, policies: Sequence[str], run: dict[str, Any]) -> tuple[Scenario, list[tuple[Any, str]]]:
    """Return a scenario, and the policies with their labels, all of which can run on it."""
    from queue_env.scoring.figure_data import half_decades
    from queue_env.scoring.named_policies import check_policies, load_policy

    model = named_scenario(name, {}, ())
    if model.patience is not None:
        raise ValueError(f"--scenario must be one without patience, whose tail has a bound, got {name!r}")
    half_decades(model, run["t_max"])
    found = [load_policy(policy, model) for policy in dict.fromkeys(policies)]
    return model, list(zip(found, check_policies(found, model, "figure tail"), strict=True))


def _joined(
    model: Scenario,
    policies: Sequence[tuple[Any, str]],
    run: dict[str, Any],
    directory: Path | None,
    interrupts: Interrupts,
) -> list[JoinedTail]:
    from queue_env.scoring.figure_data import joined_tail

    return estimate_each(partial(joined_tail, model=model, **run), model, policies, directory, interrupts)


def _draw(models: dict[str, Scenario], tails: dict[str, list[JoinedTail]], out: Path) -> None:
    from queue_env.report import joined_tails_csv, joined_tails_figure, scenario_line

    panels = {scenario_line(models[name]): found for name, found in tails.items()}
    points = out.with_suffix(".csv").name
    write_files(out.parent, {points: joined_tails_csv(tails)}, {out.name: joined_tails_figure(panels)})


figure.command("tail")(reporting_errors(tail))
figure.command("frontier")(reporting_errors(frontier))
for name, command in COMMANDS.items():
    figure.command(name)(reporting_errors(command))
