"""The command `explain`: what a policy with an anchor does, as pictures and words, and a short rule near it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queue_env.cli import options
from queue_env.cli.inputs import check_file, check_out, check_seed, named_scenario, parse_count
from queue_env.cli.output import json_text, print_tables, write_files

if TYPE_CHECKING:
    from queue_env.explain import AnchorLaw, Distilled, Effect, RateMap, States
    from queue_env.scenarios import Scenario
    from queue_env.settings import Setting

__all__ = ["explain"]

DEFAULT_SCENARIO = "high-load-2"


def explain(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A learned policy, learned-high-load-2 or learned:FILE.json; or dynasplit, backlog-split, split.",
        ),
    ],
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario",
            metavar="SCENARIO",
            help=f"A named scenario; by default the first on which it was trained, or {DEFAULT_SCENARIO}.",
        ),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="Beside it in the maps; by default dynasplit and backlog-split:b=n-1,kappa=0.3. May be repeated.",
        ),
    ] = None,
    states: Annotated[str, typer.Option("--states", metavar="COUNT", help="States to look at, such as 1e5.")] = "1e5",
    seed: options.Seed = 0,
    distill_to: Annotated[
        Path | None,
        typer.Option(
            "--distill",
            metavar="FILE.json",
            help="Where to write the rule that fits best, which then is the policy learned:FILE.json.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Where to write rates.png, structure.png, and as CSV what they show."),
    ] = None,
    svg: Annotated[bool, typer.Option("--svg", help="Figures as SVG in place of PNG.")] = False,
    as_json: options.Json = False,
) -> None:
    """Explain at which rate a policy serves the anchor: maps, the part of each feature, and short rules near it.

    The states are what arriving jobs find in a compiled run under the policy; with Poisson arrivals, shares of them
    are shares of time.

    Example: queue-env explain learned-high-load-2 --out explained --distill rule.json
    """
    check_out(out)
    if distill_to is not None:
        check_file("--distill", distill_to)
    if out is None and svg:
        raise ValueError("--svg needs --out, the directory for the figures")
    count, seed = parse_count("--states", states), check_seed(seed)
    subject = _subject(policy, scenario, beside)
    found = _find(subject, count, seed)
    if distill_to is not None:
        _write_rule(distill_to, subject, found, seed)
    if out is not None:
        _draw(out, found, subject.title, "svg" if svg else "png")
    if as_json:
        typer.echo(_document(subject, found, seed))
    else:
        _print(subject, found)


# ---- what is explained ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A policy on a scenario, and others to put beside it.

    Attributes:
        model: the scenario.
        settings: of the policies, its own first.
        laws: of their anchors.
    """

    model: Scenario
    settings: Sequence[Setting]
    laws: Sequence[AnchorLaw]

    @property
    def title(self) -> str:
        """What is explained, in one line."""
        from queue_env.report import scenario_line

        return f"{self.laws[0].label} on {scenario_line(self.model)}"


@dataclass(frozen=True)
class Findings:
    """What was found."""

    states: States
    effects: Sequence[Effect]
    rates: RateMap
    structure: RateMap
    rules: Sequence[Distilled]

    @property
    def best(self) -> Distilled:
        """The rule whose rates differ least from the policy's."""
        return min(self.rules, key=lambda rule: rule.difference)


def _subject(policy: str, name: str | None, beside: Sequence[str] | None) -> Subject:
    from queue_env.explain import anchor_law
    from queue_env.network import NetworkPolicy
    from queue_env.plan import make_plan
    from queue_env.rules import parse_policy

    user = parse_policy(policy).user
    trained = _trained_on(policy, user.training) if isinstance(user, NetworkPolicy) else None
    model = named_scenario(name or trained or DEFAULT_SCENARIO, {}, ())
    others = _beside(model) if beside is None else beside
    plan = make_plan(model, list(dict.fromkeys([policy, *others])))
    laws = [anchor_law(setting, model.sizes.mean) for setting in plan.settings]
    return Subject(model, plan.settings, laws)


def _trained_on(policy: str, training: Mapping[str, Any]) -> str | None:
    """The first scenario on which a network was trained, by what its file says, if it says so."""
    match training.get("scenarios", []):
        case []:
            return None
        case [str(first), *_]:
            return first
        case other:
            raise ValueError(f"explain: {policy}: scenarios of the training must be a list of names, got {other!r}")


def _beside(model: Scenario) -> list[str]:
    """Return the reference policies that are shown by default; dynasplit needs spare capacity."""
    rule = f"backlog-split:b={max(model.servers - 1, 1)},kappa=0.3"
    return ["dynasplit", rule] if model.spare > 0 else [rule]


def _find(subject: Subject, count: int, seed: int) -> Findings:
    from queue_env.explain import FORMS, distill, effects, rate_map, visited_states

    law, servers = subject.laws[0], subject.model.servers
    states = visited_states(subject.settings[0], subject.model, count, seed)
    return Findings(
        states=states,
        rates=rate_map(states, subject.laws, ("anchor_size", "others_work")),
        structure=rate_map(states, [law], ("anchor_remaining", "next_remaining")),
        effects=effects(law, states),
        rules=[distill(law, states, form, servers) for form in FORMS],
    )


# ---- what comes of it ----------------------------------------------------------------------------


def _write_rule(path: Path, subject: Subject, found: Findings, seed: int) -> None:
    from queue_env.network import write_network

    rule = found.best
    options = {
        "--scenario": subject.model.name,
        "--states": str(found.states.looks),
        "--seed": str(seed),
        "--distill": str(path),
    }
    words = [word for option in options.items() for word in option]
    training = {
        "command": shlex.join(["queue-env", "explain", subject.laws[0].label, *words]),
        "scenarios": [subject.model.name],
        "fitted_to": subject.laws[0].label,
        "rule": rule.formula,
        "mean_difference_of_rates": rule.difference,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_network(path, rule.network, training)
    typer.echo(f"wrote {path}, the policy learned:{path}", err=True)


def _draw(out: Path, found: Findings, title: str, kind: str) -> None:
    from queue_env.report import effects_csv, map_csv, maps_figure, structure_figure

    figures = {
        f"rates.{kind}": maps_figure(found.rates, title),
        f"structure.{kind}": structure_figure(found.structure, found.effects, title),
    }
    texts = {
        "rates.csv": map_csv(found.rates),
        "structure.csv": map_csv(found.structure),
        "features.csv": effects_csv(found.effects),
    }
    write_files(out, texts, figures)


def _document(subject: Subject, found: Findings, seed: int) -> str:
    from dataclasses import asdict

    from queue_env.report import shares

    rules: list[dict[str, Any]] = [
        {
            "rule": rule.form,
            "r2": rule.r2,
            "mean_difference": rule.difference,
            "parameters": rule.parameters,
            "y": rule.formula,
            "words": rule.words,
        }
        for rule in found.rules
    ]
    return json_text(
        "explain",
        policy=subject.laws[0].label,
        scenario=subject.model.to_dict(),
        seed=seed,
        states=found.states.looks,
        shares=shares(found.states),
        features=[asdict(effect) for effect in found.effects],
        rules=rules,
    )


def _print(subject: Subject, found: Findings) -> None:
    from queue_env.report import effects_table, rules_table, shares_table

    tables = [shares_table(found.states), effects_table(found.effects), rules_table(found.rules)]
    print_tables(tables, subject.title)
    typer.echo(f"{found.best.form}: {found.best.words}")
