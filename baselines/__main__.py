"""``python -m baselines``: the catalogue of baselines, as tables or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from baselines.registry import REGISTRY, Baseline, learned_policies
from queue_env.cli import options
from queue_env.cli.output import json_text, print_tables
from queue_env.report import Table

NOTHING = "-"


def catalogue(as_json: options.Json = False) -> None:
    """Print every baseline: its law, what it must know, what to tune, and what is proven of it; and learned policies.

    Example: python -m baselines --json
    """
    if as_json:
        learned = [asdict(policy) for policy in learned_policies().values()]
        typer.echo(json_text("baselines", baselines=[_plain(item) for item in REGISTRY.values()], learned=learned))
    else:
        print_tables(_tables())


def _plain(baseline: Baseline) -> dict[str, Any]:
    law = {"law": baseline.policy.law, "law_source": baseline.policy.source}
    return {**asdict(baseline), **law, "parameters": [asdict(parameter) for parameter in baseline.policy.parameters]}


def _tables() -> list[Table]:
    rules, proofs = [], []
    for name, baseline in REGISTRY.items():
        knows, tuning = (", ".join(words) or NOTHING for words in (baseline.information, baseline.tuning))
        rules.append((name, knows, tuning, baseline.policy.law))
        proofs.append((name, baseline.guarantee, baseline.source or NOTHING))
    learned = [
        (policy.name, ", ".join(policy.scenarios), "-".join(map(str, policy.widths)), policy.command)
        for policy in learned_policies().values()
    ]
    return [
        Table("Baselines", ("policy", "must know", "to tune", "law"), tuple(rules)),
        Table("What is proven of them", ("policy", "guarantee", "source"), tuple(proofs)),
        Table("Learned", ("policy", "trained on", "layers", "by"), tuple(learned)),
    ]


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(catalogue)

if __name__ == "__main__":
    app(prog_name="python -m baselines")
