"""``python -m train.tune``: search the parameters of a reference policy for a scenario, on common jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from queue_env.cli import options
from queue_env.cli.app import reporting_errors
from queue_env.cli.inputs import check_writable, parse_count, parse_overrides
from queue_env.cli.output import json_text, print_tables
from queue_env.comparison import Comparison
from queue_env.plan import make_plan
from queue_env.quantities import check_quantity
from queue_env.report import Table, atomic_file
from queue_env.result import Result
from queue_env.scenarios import Scenario, scenario
from queue_env.simulator import simulate
from queue_env.tail import Interval
from train.grid import candidates

__all__ = ["Tuning", "tune"]

LARGER_IS_BETTER = ("throughput",)


@dataclass(frozen=True)
class Tuning:
    """What a search found.

    Attributes:
        quantity: what was searched for, a name as in `Result.value`.
        results: the candidates that ran, on the same jobs.
        refused: why the others cannot run, by label.
        best: label of the best one.
        again: its quantity on jobs that had no part in the search. The best of many is partly the luckiest, so
            what it showed in the search is too good.
    """

    quantity: str
    results: Comparison
    refused: dict[str, str]
    best: str
    again: Interval

    def difference(self, label: str) -> Interval | None:
        """What a candidate has more than the best, paired; None for the best itself."""
        return None if label == self.best else self.results.difference(label, self.best, self.quantity)


def tune(model: Scenario, labels: Sequence[str], quantity: str, jobs: int, seed: int = 0) -> Tuning:
    """Run candidates on the same jobs, and the best of them once more on others.

    Args:
        model: the scenario.
        labels: the candidates.
        quantity: a name as in `Result.value`; the least is best, of throughput the largest.
        jobs: counted jobs of each of the two runs.
        seed: of the search; the second run has the next.

    Raises:
        ValueError: an argument is not allowed, no candidate can run, or too few events were seen to choose by.
        KeyboardInterrupt: interrupted; half a search is none.
    """
    kind, _ = check_quantity(quantity, model.spare)
    able, refused = _able(model, labels)
    results = simulate(model, tuple(able), jobs=jobs, seed=seed)
    _refuse_interrupted(*results.values())
    found = {label: result.interval(quantity) for label, result in results.items()}
    seen = [label for label, interval in found.items() if math.isfinite(interval.half_width)]
    if not seen:
        raise ValueError(f"{quantity}: none of the {len(able)} candidates has an interval with jobs={jobs}, take more")
    best = (max if kind in LARGER_IS_BETTER else min)(seen, key=lambda label: found[label].value)
    again = simulate(model, best, jobs=jobs, seed=seed + 1)
    _refuse_interrupted(again)
    return Tuning(quantity, results, refused, best, again.interval(quantity))


def _refuse_interrupted(*results: Result) -> None:
    if any(result.interrupted for result in results):
        raise KeyboardInterrupt


def _able(model: Scenario, labels: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Split candidates into those that can run and the reasons of those that cannot."""
    able, refused = [], {}
    for label in labels:
        try:
            note = make_plan(model, [label]).settings[0].note
        except ValueError as error:
            note = str(error)
        if note:
            refused[label] = note
        else:
            able.append(label)
    if not able:
        raise ValueError(f"none of {len(refused)} candidates can run; the first: {next(iter(refused.values()))}")
    return able, refused


# ---- command line -----------------------------------------------------------------------------------------


@reporting_errors
def main(
    name: options.ScenarioName,
    policy: Annotated[str, typer.Option(help="The policy, with parameters that stay: backlog-split:b=1.")],
    grids: Annotated[
        list[str],
        typer.Option(
            "--parameter",
            metavar="GRID",
            help="Values to try: d=0.9:2.3:8 for 8 at equal distances, d=0.1:10:8:log at equal ratios, or a list, "
            "d=1,1.5,2. May be repeated, for all combinations.",
        ),
    ],
    quantity: Annotated[
        str, typer.Option(help="What to make small (throughput: large), such as normalised_tail:100 or quantile:0.99.")
    ] = "mean_response",
    jobs: options.BenchJobs = "1e6",
    seed: options.Seed = 0,
    overrides: options.Overrides = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write the JSON.")] = None,
    as_json: options.Json = False,
) -> None:
    """Search the parameters of a reference policy; all candidates meet the same jobs.

    The best is run once more on fresh jobs, since the best of many looks better than it is.

    Example: python -m train.tune high-load-2 --policy thresh-split --parameter d=0.9:2.3:8
    """
    model = scenario(name, **parse_overrides(overrides or []))
    count = parse_count("--jobs", jobs)
    if out is not None:
        if out.is_dir():
            raise ValueError(f"--out must be a file, but {out} is a directory")
        check_writable("the directory of --out", out.parent)
    found = tune(model, candidates(policy, grids), quantity, count, seed)
    document = json_text("train.tune", **_plain(model, found, count, seed))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(out) as file:
            file.write(f"{document}\n".encode())
    if as_json:
        typer.echo(document)
    else:
        print_tables(_tables(found), f"{model.name}, {count:,} jobs, seed {seed}")


def _plain(model: Scenario, found: Tuning, jobs: int, seed: int) -> dict[str, Any]:
    rows = []
    for label, result in found.results.items():
        difference = found.difference(label)
        rows.append(
            {
                "policy": label,
                **result.interval(found.quantity)._asdict(),
                "difference": None if difference is None else difference._asdict(),
            }
        )
    return {
        "scenario": model.to_dict(),
        "quantity": found.quantity,
        "jobs": jobs,
        "seed": seed,
        "candidates": rows,
        "refused": [{"policy": label, "reason": reason} for label, reason in found.refused.items()],
        "best": {"policy": found.best, "seed": seed + 1, **found.again._asdict()},
    }


def _tables(found: Tuning) -> list[Table]:
    """The candidates, those that cannot run, and the best on fresh jobs."""
    quantity = found.quantity
    rows = [(label, result.interval(quantity), found.difference(label)) for label, result in found.results.items()]
    tables = [Table("Candidates, on the same jobs", ("policy", quantity, "difference to the best"), tuple(rows))]
    if found.refused:
        tables.append(Table("Cannot run", ("policy", "reason"), tuple(found.refused.items())))
    return [*tables, Table("The best, on fresh jobs", ("policy", quantity), ((found.best, found.again),))]


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    app(prog_name="python -m train.tune")
