"""``python -m train.evaluate``: a learned policy beside the reference policies, paired, on several scenarios."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from queue_env.cli import options
from queue_env.cli.app import reporting_errors
from queue_env.cli.inputs import check_threads, check_writable, named_scenario
from queue_env.cli.output import json_text, print_tables
from queue_env.cli.score import Wanted, checked_run, heading_of, load_wanted, score_each
from queue_env.distributions.checks import whole
from queue_env.report import Table
from queue_env.rules import parse_policy
from queue_env.scenarios import Scenario
from queue_env.scoring.named_policies import stable_policies
from queue_env.scoring.score import TAIL_RANGE, Scores
from queue_env.scoring.strata import check_decomposable
from queue_env.tail import Interval
from train.bar import search_bar
from train.es import compared, fresh_tables

__all__ = ["app", "main"]

_OWN = 7933  # beside the seed, so that no search and no training has met the same jobs
REFERENCES = ("fcfs", "srpt", "split", "thresh-split", "dynasplit", "backlog-split")


@reporting_errors
def main(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Such as learned:policy.json, or as `queue-env score`.")
    ],
    scenarios: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Named scenarios.")],
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="POLICY", help=f"Beside it; {', '.join(REFERENCES)} by default. Repeatable."),
    ] = None,
    overrides: options.Overrides = None,
    replications: Annotated[
        int | None,
        typer.Option(
            help="Score by so many replications like those of train.es instead, all policies on the same jobs in each. "
            "Their differences are known far better."
        ),
    ] = None,
    width: options.Width = 0.05,
    jobs: options.PlainJobs = "1e6",
    most_jobs: options.MostJobs = "2e8",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    checkpoint: options.CheckpointDirectory = None,
    as_json: options.Json = False,
) -> None:
    """Score a policy and the reference policies on the same streams of jobs, and say how much less its score is.

    No seed gives the jobs of a search by train.es. --replications leaves --width, --jobs, --most-jobs and --checkpoint
    without effect.

    Example: python -m train.evaluate learned:policy.json high-load-2 high-load-4 --set load=0.9
    """
    run = checked_run(TAIL_RANGE, width, jobs, most_jobs, seed, threads)
    if checkpoint is not None:
        check_writable("--checkpoint", checkpoint)
    models = [named_scenario(name, {}, overrides or ()) for name in dict.fromkeys(scenarios)]
    for place in models:
        check_decomposable(place, "train.evaluate")
    if replications is not None:
        whole("train.evaluate", "replications", replications, 2)
        whole("train.evaluate", "seed", seed, 0)
        asked = [(place, _names(model, place, policies)) for place in models]
        _compare(asked, replications, seed, check_threads(threads), as_json)
        return
    wanted = [(place, load_wanted(place, _names(model, place, policies), TAIL_RANGE)) for place in models]
    found = [(place, _scored(place, chosen, run, checkpoint)) for place, chosen in wanted]
    if as_json:
        rows = [_rows(scores, chosen[0].label) for (_, scores), (_, chosen) in zip(found, wanted, strict=True)]
        results = {place.name: row for place, row in zip(models, rows, strict=True)}
        typer.echo(json_text("train.evaluate", model=model, seed=seed, scenarios=results))
        return
    for (place, scores), (_, chosen) in zip(found, wanted, strict=True):
        print_tables([_table(_rows(scores, chosen[0].label), chosen[0].label)], heading_of(place, run))


def _compare(
    asked: Sequence[tuple[Scenario, Sequence[str]]], replications: int, seed: int, threads: int | None, as_json: bool
) -> None:
    """Score policies by replications of the search's kind, and print scores and differences to the first."""
    from train.objective import UNSTABLE, make_objective

    objectives = [make_objective(place) for place, _ in asked]
    policies = [[parse_policy(name) for name in names] for _, names in asked]
    for objective, chosen in zip(objectives, policies, strict=True):
        for policy in chosen:
            objective.blocks(policy)  # raises what is wrong with a policy before any work
    seeds = np.random.SeedSequence([seed, _OWN]).spawn(replications)
    steps, found = replications * sum(len(names) for _, names in asked), {}
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool, search_bar(steps, "replications") as bar:
        for objective, chosen, (place, names) in zip(objectives, policies, asked, strict=True):
            scores = objective.measures(chosen, seeds, pool, bar.advance)[:, :, 0]
            for name in np.compress((scores == UNSTABLE).any(axis=1), names):
                raise ValueError(
                    f"policy {name}: blocks do not end; allowed: a policy under which the system is stable"
                )
            found[str(place.name)] = compared(dict(zip(names, scores, strict=True)))
    if as_json:
        typer.echo(json_text("train.evaluate", seed=seed, replications=replications, scenarios=found))
    else:
        print_tables(fresh_tables(found), f"{replications} replications, seed {seed}")


def _names(model: str, place: Scenario, policies: Sequence[str] | None) -> list[str]:
    stable = stable_policies(place)
    beside = [name for name in REFERENCES if name in stable] if policies is None else policies
    return list(dict.fromkeys([model, *beside]))


def _scored(place: Scenario, chosen: Sequence[Wanted], run: dict[str, Any], checkpoint: Path | None) -> Scores:
    """Return the scores on a scenario; each has a directory of its own for what is finished.

    Raises:
        KeyboardInterrupt: interrupted; what is finished is kept, if there is a checkpoint.
        ValueError: a policy cannot be scored.
    """
    directory = None if checkpoint is None else checkpoint / place.name
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    rows, failure = score_each(chosen, place, run, directory)
    if failure is not None:
        raise failure
    return Scores(rows)


def _rows(scores: Scores, model: str) -> list[dict[str, Any]]:
    """The policies, best first: score, and by which share the model's is less, with 95 % intervals."""
    rows = []
    for row in scores:
        entry: dict[str, Any] = {"policy": row.policy, "score": [row.score, row.low, row.high]}
        if row.policy != model:
            value, low, high, better = scores.difference(model, row.policy)
            entry["less"] = [-value / row.score, -high / row.score, -low / row.score]
            entry["better"] = better
        rows.append(entry)
    return rows


def _table(rows: Sequence[dict[str, Any]], model: str) -> Table:
    columns = ("policy", "tail score", "the model's is less by (%)", "P(the model is better)")
    cells = []
    for row in rows:
        less = _interval([100 * end for end in row["less"]]) if "less" in row else None
        cells.append((row["policy"], _interval(row["score"]), less, row.get("better")))
    return Table(f"Tail scores; the model is {model}", columns, tuple(cells))


def _interval(ends: Sequence[float]) -> Interval:
    return Interval(ends[0], ends[1], ends[2], 0.95)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    app(prog_name="python -m train.evaluate")
