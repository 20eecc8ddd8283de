"""``python -m baselines.scoreboard``: every reference policy on every scenario, as Markdown, CSV and a page of HTML."""

from __future__ import annotations

import csv
import io
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queue_env.cli import options
from queue_env.cli.errors import reporting_errors
from queue_env.cli.inputs import check_out
from queue_env.cli.output import json_text, print_tables, write_files
from queue_env.cli.ray import WithRay
from queue_env.cli.score import ALL, Wanted, checked_run, heading_of, load_wanted, notes_on, score_each

if TYPE_CHECKING:
    from queue_env.report import Table
    from queue_env.scenarios import Scenario
    from queue_env.scoring.score import Score, Scores

TAIL_RANGE = (1.0, 1e4)
UNFINISHED = ".unfinished"
COLUMNS = ("mean_response", "mean_slowdown", "throughput", "abandonment")


def scoreboard(
    scenarios: options.BoardScenarios = None,
    policies: options.BoardPolicies = None,
    width: options.Width = 0.05,
    jobs: options.PlainJobs = "1e7",
    most_jobs: options.MostJobs = "2e8",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    ray: options.Ray = None,
    out: options.BoardOut = Path("baselines/results"),
    as_json: options.Json = False,
) -> None:
    """Score all reference policies on all scenarios, and write the scoreboard. Lower is better.

    Learned policies are scored where they were trained.

    It writes scoreboard.md, scoreboard.csv and scoreboard.html, which shows tables and tail curves and needs no
    network. What is finished is kept until all is: after an interrupt, the same command goes on from there.

    Example: python -m baselines.scoreboard --scenario high-load-2 --policy srpt --policy dynasplit --out results
    """
    from queue_env.scoring.executors import cluster

    check_out(out)
    run = checked_run(TAIL_RANGE, width, jobs, most_jobs, seed, threads, ray)
    wanted = _wanted(scenarios, policies)
    found: dict[str, Scores] = {}
    with cluster(ray):
        for name, (model, chosen) in wanted.items():
            kept = out / UNFINISHED / name
            kept.mkdir(parents=True, exist_ok=True)
            found[name] = _scored(model, chosen, run, kept)
    _write(out, {name: heading_of(model, run) for name, (model, _) in wanted.items()}, found)
    shutil.rmtree(out / UNFINISHED)
    if as_json:
        typer.echo(json_text("scoreboard", rows=[row for scores in found.values() for row in scores.to_list()]))
    else:
        print_tables([_table(scores) for scores in found.values()])


def _wanted(
    scenarios: Sequence[str] | None, policies: Sequence[str] | None
) -> dict[str, tuple[Scenario, list[Wanted]]]:
    """Return what to score on which scenario; what cannot be scored is found before any work is done."""
    from queue_env.scenarios import SCENARIOS, scenario

    models = [scenario(name) for name in dict.fromkeys(scenarios or SCENARIOS)]
    return {model.name: (model, load_wanted(model, policies or _usual(model), TAIL_RANGE)) for model in models}


def _usual(model: Scenario) -> list[str]:
    from baselines.registry import learned_policies

    return [ALL, *(policy.name for policy in learned_policies().values() if model.name in policy.scenarios)]


def _scored(model: Scenario, chosen: Sequence[Wanted], run: Mapping[str, Any], kept: Path) -> Scores:
    """Return the scores of a scenario.

    Raises:
        KeyboardInterrupt: interrupted; what is finished is kept.
        ValueError: a policy cannot be scored.
    """
    from queue_env.scoring.score import Scores

    typer.echo(f"{model.name}: {', '.join(item.label for item in chosen)}", err=True)
    rows, failure = score_each(chosen, model, dict(run), kept)
    if isinstance(failure, KeyboardInterrupt):
        raise KeyboardInterrupt(f"the same command goes on from what is in {kept.parent}")
    if failure is not None:
        raise failure
    for row in rows:
        for note in notes_on(row):
            typer.echo(f"note: {model.name}: {note}", err=True)
    return Scores(rows)


# ---- what is written -----------------------------------------------------------------------------


def _write(out: Path, headings: Mapping[str, str], found: Mapping[str, Scores]) -> None:
    from baselines.scoreboard_page import page

    command = shlex.join(["python", "-m", "baselines.scoreboard", *sys.argv[1:]])
    texts = {
        "scoreboard.md": _markdown(headings, found, command),
        "scoreboard.csv": _csv(found),
        "scoreboard.html": page(headings, {name: _table(scores) for name, scores in found.items()}, found, command),
    }
    write_files(out, texts, {})


def _table(scores: Scores) -> Table:
    from queue_env.report import score_tables

    return score_tables(scores, "")[0]


def _markdown(headings: Mapping[str, str], found: Mapping[str, Scores], command: str) -> str:
    from queue_env.report import markdown

    parts = [f"# Scoreboard\n\nMade by `{command}`. Lower is better; intervals are of 95 %.\n"]
    for name, scores in found.items():
        notes = [f"\nNote: {note}.\n" for row in scores for note in notes_on(row)]
        parts.append("".join([f"## {name}\n\n{headings[name]}\n\n{markdown(_table(scores))}", *notes]))
    return "\n".join(parts)


def _csv(found: Mapping[str, Scores]) -> str:
    """A line for each policy on each scenario, with all digits."""
    rows = [_flat(row) for scores in found.values() for row in scores]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(score: Score) -> dict[str, Any]:
    row, mean = score.to_dict(), score.plain.sizes.mean
    flat = {key: row[key] for key in ("scenario", "policy", "score", "score_low", "score_high")}
    for point in row["normalised_tail"]:
        for key, end in (("value", ""), ("low", "_low"), ("high", "_high")):
            flat[f"R({point['t'] / mean:g}){end}"] = point[key]
    flat |= {key: row[key] for name in COLUMNS for key in (name, f"{name}_low", f"{name}_high") if key in row}
    flat |= {f"quantile_{level}": value for level, value in row["quantiles"].items()}
    return flat | {key: row[key] for key in ("jobs", "seconds", "seed", "reached", "version")}


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command(cls=WithRay)(reporting_errors(scoreboard))

if __name__ == "__main__":
    app(prog_name="python -m baselines.scoreboard")
