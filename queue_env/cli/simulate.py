"""The command `simulate`: a scenario or a trace, several policies on the same jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queue_env.cli import options
from queue_env.cli.inputs import check_out, named_scenario, parse_count
from queue_env.cli.output import json_text, print_tables, save

if TYPE_CHECKING:
    from queue_env.comparison import Comparison
    from queue_env.scenarios import Scenario
    from queue_env.workload import Workload

__all__ = ["simulate"]

ALL = "all"
DEFAULT_POLICIES = ("srpt",)


def simulate(
    scenario: options.OptionalScenarioName = None,
    policies: options.Policies = None,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    servers: options.Servers = None,
    load: options.Load = None,
    clock: options.Clock = None,
    overrides: options.Overrides = None,
    trace: options.Trace = None,
    arrival: options.Arrival = None,
    size: options.Size = None,
    patience: options.Patience = None,
    sort: options.Sort = False,
    skip_invalid: options.SkipInvalid = False,
    warmup: options.Warmup = None,
    streams: options.Streams = None,
    threads: options.Threads = None,
    checkpoint: options.Checkpoint = None,
    out: options.Out = None,
    records: options.Records = False,
    as_json: options.Json = False,
) -> None:
    """Simulate policies on the same jobs, and compare them.

    Example: queue-env simulate high-load-2 --policy srpt --policy dynasplit --jobs 1e7 --out results

    Example: queue-env simulate --trace jobs.csv --servers 4 --load 0.8 --policy all
    """
    _check_output(out, records)
    run: dict[str, Any] = {
        "seed": seed,
        "warmup": None if warmup is None else parse_count("--warmup", warmup, least=0),
        "streams": streams,
        "threads": threads,
        "checkpoint": checkpoint,
        "records": records,
    }
    count = None if jobs is None else parse_count("--jobs", jobs)
    source: Scenario | Workload
    if trace is None:
        _refuse_beside("SCENARIO", {"--arrival": arrival, "--size": size, "--patience": patience})
        changes = {"servers": servers, "load": load, "clock": clock}
        source = _scenario(scenario, changes, overrides or ())
        name = source.name
        run["jobs"] = count
    else:
        _refuse_beside("--trace", {"SCENARIO": scenario, "--set": overrides})
        reading = {"arrival": arrival, "size": size, "patience": patience, "sort": sort, "skip_invalid": skip_invalid}
        source = _workload(trace, servers, load, count, reading)
        run |= {"servers": servers, "clock": clock}
        name = trace.name
    _report(name, _simulate(source, policies or DEFAULT_POLICIES, run), out, as_json)


def _check_output(out: Path | None, records: bool) -> None:
    check_out(out)
    if out is None and records:
        raise ValueError("--records needs --out, the directory to write them to")


def _refuse_beside(given: str, others: Mapping[str, object]) -> None:
    for name, value in others.items():
        if value is not None:
            raise ValueError(f"{name} does not go with {given}, got {value!r}")


def _scenario(name: str | None, changes: Mapping[str, Any], overrides: Sequence[str]) -> Scenario:
    """The named scenario, with what --servers, --load, --clock and --set change."""
    if name is None:
        raise ValueError("SCENARIO or --trace must be given; `queue-env list` shows the scenarios")
    return named_scenario(name, changes, overrides)


def _workload(
    trace: Path, servers: int | None, load: float | None, limit: int | None, reading: Mapping[str, Any]
) -> Workload:
    from queue_env.trace import load_trace

    if servers is None:
        raise ValueError("--servers must be given with --trace")
    return load_trace(trace, load=load, servers=None if load is None else servers, limit=limit, **reading)


def _simulate(source: Scenario | Workload, policies: Sequence[str], run: Mapping[str, Any]) -> Comparison:
    from queue_env.plan import reference_policies
    from queue_env.simulator import simulate as run_policies

    names: list[str] = []
    for policy in policies:
        names += reference_policies(source, run.get("servers")) if policy == ALL else [policy]
    return run_policies(source, list(dict.fromkeys(names)), **run)


def _report(name: str, results: Comparison, out: Path | None, as_json: bool) -> None:
    """Save and print the results; end as interrupted if they are those of an interrupted run."""
    from queue_env.report import difference_table, headline, result_tables, speed

    heading, tables = headline(results, name), result_tables(results)
    if len(results) > 1:
        tables.append(difference_table(results))
    document = _document(results)
    if out is not None:
        save(out, results, tables, heading, document)
    if as_json:
        typer.echo(document)
    else:
        print_tables(tables, heading)
        typer.echo(speed(results))
        for result in results.values():
            if result.note:
                typer.echo(f"note: {result.note}")
    first = next(iter(results.values()))
    if first.interrupted:
        raise KeyboardInterrupt(f"kept the {first.jobs:,} jobs of the streams that had ended")


def _document(results: Comparison) -> str:
    from queue_env.report import paired_differences

    first = next(iter(results))
    differences = [
        {"policy": policy, "less": first, "quantity": quantity, **interval._asdict()}
        for policy, quantities in paired_differences(results).items()
        for quantity, interval in quantities.items()
    ]
    summaries = list(results.to_dict().values())
    return json_text("simulate", results=summaries, differences=differences)
