"""The commands that look things up or time them: `list`, `theory`, `bench`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from queue_env.cli import options
from queue_env.cli.inputs import parse_count, parse_overrides
from queue_env.cli.output import json_text, print_tables

if TYPE_CHECKING:
    from queue_env.report import Table

__all__ = ["bench", "list_all", "theory"]


def list_all(as_json: options.Json = False) -> None:
    """List the named scenarios, and the policies with their parameters.

    Example: queue-env list
    """
    scenarios, policies, learned = _scenario_rows(), _policies(), _learned()
    if as_json:
        typer.echo(json_text("list", scenarios=scenarios, policies=policies, learned=learned))
        return
    laws = [{key: policy[key] for key in ("name", "law", "source")} for policy in policies]
    tables = {"Scenarios": scenarios, "Policies": laws, "Parameters": _parameter_rows(policies), "Learned": learned}
    print_tables(_table(title, rows) for title, rows in tables.items())


def theory(
    scenario: options.ScenarioName,
    overrides: options.Overrides = None,
    as_json: options.Json = False,
) -> None:
    """Print every closed form, limit and bound that applies to a scenario.

    In JSON the value of what is infinite is null.

    Example: queue-env theory light-2 --set servers=1
    """
    from dataclasses import asdict

    from queue_env.scenarios import scenario as build
    from queue_env.theory import applicable

    model = build(scenario, **parse_overrides(overrides or []))
    values = [asdict(value) for value in applicable(model)]
    if as_json:
        typer.echo(json_text("theory", scenario=model.to_dict(), values=values))
    elif values:
        columns = ("quantity", "policy", "value", "unit", "kind", "formula", "source")
        rows = [{column: value[column] for column in columns} for value in values]
        print_tables([_table(f"Theory for {model.name}", rows)])
    else:
        typer.echo(f"No closed form applies to {model.name} with these arrivals, sizes, patience and clock.")


def bench(
    jobs: options.BenchJobs = "2e6",
    quick: options.Quick = False,
    environments: options.Environments = False,
    as_json: options.Json = False,
) -> None:
    """Measure the speed of the simulator on this machine, in jobs per second; or of the environments, in steps.

    Example: queue-env bench --quick
    """
    count = parse_count("--jobs", jobs)
    rows = _time_environments(quick) if environments else _time_simulator(count, quick)
    if as_json:
        typer.echo(json_text("bench", jobs=count, rows=rows))
    else:
        print_tables([_table("Speed", rows)])


def _time_simulator(jobs: int, quick: bool) -> list[dict[str, Any]]:
    from queue_env.bench import run_bench

    return run_bench(jobs=jobs, quick=quick)


def _time_environments(quick: bool) -> list[dict[str, Any]]:
    from queue_env.bench_env import run_env_bench

    return run_env_bench(seconds=0.2 if quick else 2.0)


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    """A table with a column for each key, in the order in which they appear."""
    from queue_env.report import Table

    keys = list(dict.fromkeys(key for row in rows for key in row))
    titles = tuple(key.replace("_", " ") for key in keys)
    return Table(title, titles, tuple(tuple(_cell(row.get(key)) for key in keys) for row in rows))


def _cell(value: Any) -> str | float | None:
    if isinstance(value, Mapping):
        law, *parameters = value.items()
        return " ".join([str(law[1]), *(f"{key}={number}" for key, number in parameters)])
    return value if isinstance(value, int | float) or value is None else str(value)


def _scenario_rows() -> list[dict[str, Any]]:
    from queue_env.scenarios import SCENARIOS, scenario
    from queue_env.theory import regime

    models = {name: scenario(name) for name in SCENARIOS}
    return [
        {
            "name": name,
            "servers": model.servers,
            "load": model.load,
            "sizes": SCENARIOS[name]["sizes"],
            "patience": SCENARIOS[name].get("patience"),
            "regime": regime(model),
            "spare_capacity": model.spare,
        }
        for name, model in models.items()
    ]


def _policies() -> list[dict[str, Any]]:
    """The policies as plain data, each with its parameters in a list."""
    from dataclasses import asdict

    from queue_env.rules import POLICIES

    return [
        {
            "name": info.name,
            "parameters": [asdict(parameter) for parameter in info.parameters],
            "law": info.law,
            "source": info.source,
        }
        for info in POLICIES.values()
    ]


def _learned() -> list[dict[str, Any]]:
    """The learned policies that come with the package as plain data."""
    from queue_env.network import read_network, shipped_networks

    found = {name: read_network(path) for name, path in shipped_networks().items()}
    return [
        {"name": name, "law": f"the anchor's rate by a network of {', '.join(network.features)}", "trained_on": where}
        for name, (network, training) in found.items()
        for where in [", ".join(training["scenarios"])]
    ]


def _parameter_rows(policies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"policy": policy["name"], **{key: parameter[key] for key in ("name", "default", "meaning")}}
        for policy in policies
        for parameter in policy["parameters"]
    ]
