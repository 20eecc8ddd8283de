"""The points of a sweep: a scenario with other values in some places, and the policies that run there."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from queue_env.distributions import law
from queue_env.distributions.checks import refuse
from queue_env.plan import make_plan, signature
from queue_env.quantities import check_quantity
from queue_env.rules import POLICIES, OnePolicy, Policy, parse_policy
from queue_env.scenarios import Scenario
from queue_env.scoring.curve import runnable_policy
from queue_env.scoring.strata import check_decomposable

__all__ = ["SCORE", "Measuring", "Point", "Value", "make_points"]

Value: TypeAlias = float | str

SCORE = "score"
_SEED_BYTES = 6  # whole numbers of so many bytes are exact in JSON, whoever reads it
_FIELDS = ("load", "servers")


@dataclass(frozen=True)
class Measuring:
    """What is measured at every point, and by how much work.

    Attributes:
        measure: a quantity, as in `Result.value`, or `SCORE`.
        jobs: of each run; for a score, of its plain run.
        rel_half_width: of a score, where it stops.
        most_jobs: that may be simulated for a score.
    """

    measure: str
    jobs: int
    rel_half_width: float
    most_jobs: float

    def identity(self) -> dict[str, Any]:
        """What a result is a function of, besides the point; JSON-able."""
        plain = {"measure": self.measure, "jobs": self.jobs}
        return plain | {"width": self.rel_half_width, "most_jobs": self.most_jobs} if self.measure == SCORE else plain


@dataclass(frozen=True)
class Point:
    """One point.

    Attributes:
        place: the values, by the names of the axes.
        scenario: with these values.
        policies: with these values.
        seed: a function of the scenario and of the seed of the sweep, so that it stays when other points come along,
            and where only policies differ all meet the same jobs.
    """

    place: Mapping[str, Value]
    scenario: Scenario
    policies: tuple[Policy, ...]
    seed: int

    def key(self, measuring: Measuring) -> str:
        """What tells the results of a point from those of others, in a few letters."""
        labels = [signature(policy) for policy in self.policies]
        return _digest([_unnamed(self.scenario), labels, self.seed, measuring.identity()]).hex()[:32]


class Axis(NamedTuple):
    """What a sweep changes.

    Attributes:
        name: as given.
        kind: "scenario", "sizes" or "policy".
        field: of the scenario, of its law of sizes or of policies.
        values: each once.
    """

    name: str
    kind: str
    field: str
    values: tuple[Value, ...]


def make_points(
    model: Scenario,
    policies: Sequence[OnePolicy],
    over: Mapping[str, Sequence[Value]],
    measuring: Measuring,
    seed: int,
) -> tuple[list[Axis], list[Point]]:
    """Return the axes with their values, and all combinations of these, the last axis fastest.

    Args:
        model: the scenario in which values are changed.
        policies: as for `simulate`.
        over: values by axis: ``load``, ``servers``, a number of the law of sizes (``alpha``), whose mean stays, or a
            parameter of policies (``margin``); where a name is both, ``sizes.shape`` and ``policy.shape``.
        measuring: what is to be measured.
        seed: of the sweep.

    Raises:
        ValueError: an axis, a value or a policy is not allowed, or something cannot be measured at one of the points.
    """
    given = tuple(parse_policy(policy) for policy in policies)
    if not given:
        refuse("sweep", "policy", "at least one", policies)
    if not over:
        refuse("sweep", "over", "at least one axis with its values", dict(over))
    if measuring.measure != SCORE:
        try:
            check_quantity(measuring.measure, spare=1.0)  # whether there is any is looked at point by point
        except ValueError as error:
            raise ValueError(f"sweep: measure must be {SCORE} or a quantity of results, {error}") from error
    axes = [_axis(name, values, model, given) for name, values in over.items()]
    points = []
    for choice in itertools.product(*(axis.values for axis in axes)):
        try:
            points.append(_point(model, given, axes, choice, seed))
            _check(points[-1], measuring)
        except ValueError as error:
            where = ", ".join(f"{axis.name}={value}" for axis, value in zip(axes, choice, strict=True))
            raise ValueError(f"sweep: at {where}: {error}") from error
    return axes, points


# ---- axes ----------------------------------------------------------------------------------------


def _axis(name: str, values: Sequence[Value], model: Scenario, policies: tuple[Policy, ...]) -> Axis:
    """Return an axis, with its values as they end up in a scenario or a policy."""
    kind, field = _resolve(name, model, policies)
    if isinstance(values, str) or not len(values):
        refuse("sweep", f"values of {name}", "a list of at least one", values)
    if kind == "policy":
        taker = next(policy for policy in policies if field in _parameters(policy))
        clean = [_parameters(taker)[field].read(taker.name, value) for value in values]
    else:
        clean = [_number(name, value) for value in values]
    return Axis(name, kind, field, tuple(dict.fromkeys(clean)))


def _resolve(name: str, model: Scenario, policies: tuple[Policy, ...]) -> tuple[str, str]:
    """Return what an axis changes, "scenario", "sizes" or "policy", and which field of it."""
    kind, dot, field = name.partition(".")
    takes = {key for policy in policies for key in _parameters(policy)}
    sizes = set(_law_numbers(model))
    known = {"scenario": set(_FIELDS), "sizes": sizes, "policy": takes}
    kinds = [kind] if dot else [kind for kind, fields in known.items() if name in fields]
    field = field if dot else name
    if len(kinds) == 1 and kinds[0] in known and field in known[kinds[0]]:
        if kinds[0] == "policy":
            _refuse_given(field, policies)
        return kinds[0], field
    both = sorted(takes & sizes)
    allowed = [*_FIELDS, *sorted(takes ^ sizes), *(f"{kind}.{key}" for key in both for kind in ("sizes", "policy"))]
    refuse("sweep", "axis", f"one of {', '.join(allowed)}, for these sizes and policies", name)


def _refuse_given(field: str, policies: tuple[Policy, ...]) -> None:
    for policy in policies:
        if field in policy.parameters:
            refuse("sweep", "policy", f"without {field}, over which the sweep goes", policy.label)


def _parameters(policy: Policy) -> dict[str, Any]:
    """The parameters that a reference policy takes, by name."""
    if policy.user is not None:
        return {}
    return {parameter.name: parameter for parameter in POLICIES[policy.name].parameters}


def _law_numbers(model: Scenario) -> list[str]:
    """The numbers of the law of sizes that are left once its mean is given."""
    spec = model.sizes.spec()
    scaled = model.sizes.scaled(2.0).spec()
    return [key for key, value in spec.items() if isinstance(value, float) and scaled[key] == value]


def _number(name: str, value: Value) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        refuse("sweep", f"values of {name}", "numbers", value)
    return int(number) if name == "servers" and number.is_integer() else number


# ---- points --------------------------------------------------------------------------------------


def _point(
    model: Scenario, policies: tuple[Policy, ...], axes: Sequence[Axis], choice: Sequence[Value], seed: int
) -> Point:
    for axis, value in zip(axes, choice, strict=True):
        if axis.kind == "policy":
            policies = tuple(_with_parameter(policy, axis.field, value) for policy in policies)
        elif axis.kind == "sizes":
            sizes = law({**model.sizes.spec(), axis.field: value}).with_mean(model.sizes.mean)
            model = model.replace(sizes=sizes)
        else:
            model = model.replace(**{axis.field: value})
    place = {axis.name: value for axis, value in zip(axes, choice, strict=True)}
    return Point(place, model, policies, int.from_bytes(_digest([seed, _unnamed(model)])[:_SEED_BYTES], "big"))


def _with_parameter(policy: Policy, name: str, value: Value) -> Policy:
    """The policy with a parameter, if it takes such."""
    if name not in _parameters(policy):
        return policy
    return replace(policy, parameters={**policy.parameters, name: value})


def _check(point: Point, measuring: Measuring) -> None:
    """Raise ValueError where something cannot be measured."""
    plan = make_plan(point.scenario, point.policies, jobs=measuring.jobs, seed=point.seed)
    for setting in plan.settings:
        if setting.note:
            refuse("sweep", "policy", "one with a steady state", f"{setting.policy.label} ({setting.note})")
    if measuring.measure != SCORE:
        check_quantity(measuring.measure, point.scenario.spare)
        return
    if point.scenario.patience is not None:
        refuse("sweep", "measure", "another than score where jobs have patience", measuring.measure)
    check_decomposable(point.scenario, "sweep")
    for policy in point.policies:
        runnable_policy(point.scenario, policy, "sweep")


def _unnamed(model: Scenario) -> dict[str, Any]:
    return {key: value for key, value in model.to_dict().items() if key != "name"}


def _digest(identity: Any) -> bytes:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).digest()
