"""`queue-env figure frontier`: what policies give up early for what they gain late."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from queue_env.cli import options
from queue_env.cli.by_policy import estimate_each
from queue_env.cli.inputs import (
    check_figure,
    check_positive,
    check_threads,
    named_scenario,
    parse_count,
)
from queue_env.cli.output import print_tables, write_files
from queue_env.interrupts import Interrupts

__all__ = ["frontier"]

DEFAULT_POLICIES = ("srpt", "dynasplit", "backlog-split")


def frontier(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A named scenario, of load below one.")],
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="As for `queue-env score`; srpt, dynasplit and backlog-split if not given. May be repeated.",
        ),
    ] = None,
    times: Annotated[
        tuple[float, float], typer.Option(metavar="T0 T1", help="The two times, in mean service times.")
    ] = (100.0, 1000.0),
    width: options.FigureWidth = 0.05,
    most_jobs: options.MostJobs = "1e9",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    checkpoint: options.CheckpointDirectory = None,
    out: options.FigureOut = Path("frontier.png"),
) -> None:
    """Draw policies by their normalised tails at two times: what they give up early for what they gain late.

    Both are of the largest-job decomposition, with 95 % intervals. The lower and the farther left, the better.

    Example: queue-env figure frontier high-load-2 --policy srpt --policy dynasplit --times 100 10000
    """
    from queue_env.scoring.frontier import check_two_times, frontier_point
    from queue_env.scoring.named_policies import check_policies, load_policy
    from queue_env.scoring.strata import check_decomposable

    model = named_scenario(scenario, {}, ())
    run: dict[str, Any] = {
        "rel_half_width": check_positive("--width", width),
        "most_jobs": parse_count("--most-jobs", most_jobs),
        "seed": seed,
        "threads": check_threads(threads),
    }
    check_figure(out, checkpoint)
    check_decomposable(model, "figure frontier")
    check_two_times(model, times)
    wanted = [load_policy(policy, model) for policy in dict.fromkeys(policies or DEFAULT_POLICIES)]
    labels = check_policies(wanted, model, "figure frontier")
    if checkpoint is not None:
        checkpoint.mkdir(parents=True, exist_ok=True)
    with Interrupts() as interrupts:
        policy_point = partial(frontier_point, model=model, times=times, **run)
        points = estimate_each(policy_point, model, list(zip(wanted, labels, strict=True)), checkpoint, interrupts)
    from queue_env.report import csv_text, frontier_figure, frontier_table, scenario_line

    table = frontier_table(points, times, scenario_line(model))
    figure = frontier_figure(points, times, scenario_line(model))
    write_files(out.parent, {out.with_suffix(".csv").name: csv_text([table])}, {out.name: figure})
    print_tables([table])
