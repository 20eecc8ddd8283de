"""Policies by name: reading them, their labels, defaults, and where they can run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from queue_env import Workload, law, scenario, simulate
from queue_env.kernel import layout
from queue_env.plan import reference_policies
from queue_env.rules import POLICIES, Policy, parse_policy
from queue_env.settings import set_up

PARETO = law({"law": "pareto", "alpha": 1.5, "mean": 1.0})
EXPONENTIAL = law({"law": "exponential", "mean": 1.0})
GOOD: dict[str, Policy] = {
    "srpt": Policy("srpt"),
    "  srpt ": Policy("srpt"),
    "srpt:": Policy("srpt"),
    "thresh-split:d=2": Policy("thresh-split", {"d": 2.0}),
    " thresh-split : d = 2.5 ": Policy("thresh-split", {"d": 2.5}),
    "thresh-split:d=1e3": Policy("thresh-split", {"d": 1000.0}),
    "backlog-split:b=1,kappa=-0.3": Policy("backlog-split", {"b": 1.0, "kappa": -0.3}),
    "backlog-split: kappa = 0.5 , b = 2": Policy("backlog-split", {"kappa": 0.5, "b": 2.0}),
    "dynasplit:delta=0.4,margin=power,shape=0.25": Policy(
        "dynasplit", {"delta": 0.4, "margin": "power", "shape": 0.25}
    ),
}
BAD: dict[str, str] = {
    "srtp": "policy='srtp' is not known; did you mean 'srpt'.* allowed: fcfs",
    "trash-split": "did you mean 'thresh-split'",
    "": "policy='' is not known.* allowed",
    ":d=2": "policy='' is not known.* allowed",
    "zzz": "policy='zzz' is not known; allowed: fcfs",
    "srpt:d=1": "srpt: parameter 'd' is not known, allowed: none",
    "thresh-split:e=1": "thresh-split: parameter 'e' is not known, allowed: d",
    "thresh-split:d": "'d' is not of the form name=value",
    "thresh-split:2": "'2' is not of the form name=value",
    "thresh-split:d=": "thresh-split: d='', allowed: a number above 0",
    "thresh-split:d=x": "thresh-split: d='x', allowed: a number above 0",
    "thresh-split:d=0": "thresh-split: d='0', allowed: a number above 0",
    "thresh-split:d=nan": "thresh-split: d='nan', allowed: a number above 0",
    "thresh-split:d=inf": "thresh-split: d='inf', allowed: a number above 0",
    "thresh-split:d=2,d=3": "'d'",
    "dynasplit:margin=linear": "dynasplit: margin='linear', allowed: log, power, constant",
    "backlog-split:kappa=nan": "backlog-split: kappa='nan', allowed",
}


@pytest.mark.parametrize("text", GOOD)
def test_text_is_read(text: str) -> None:
    policy = parse_policy(text)
    assert (policy.name, dict(policy.parameters)) == (GOOD[text].name, dict(GOOD[text].parameters))


@pytest.mark.parametrize("text", GOOD)
def test_mappings_say_the_same_as_text(text: str) -> None:
    policy = GOOD[text]
    assert parse_policy({"policy": policy.name, **policy.parameters}) == policy
    assert parse_policy(policy) is policy


@pytest.mark.parametrize("text", BAD)
def test_what_is_wrong_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=BAD[text]):
        parse_policy(text)


@pytest.mark.parametrize(
    "spec", [None, 5, ["srpt"], {"d": 1}, {"policy": None}, {"policy": "thresh-split", "d": "x"}, {}]
)
def test_what_is_no_policy_is_refused(spec: Any) -> None:
    with pytest.raises(ValueError, match="allowed"):
        parse_policy(spec)


@pytest.mark.parametrize("number", [1.0, 0.1, 1 / 3, 1.0000001, 123456.789, 1e-9, 1e17, math.pi])
def test_a_label_reads_back_as_the_same_policy(number: float) -> None:
    for policy in (
        Policy("thresh-split", {"d": number}),
        Policy("backlog-split", {"b": number, "kappa": -number}),
        Policy("dynasplit", {"delta": number, "margin": "power", "shape": number}),
        Policy("loss-priority", {"tau": number}),
        Policy("two-class", {"tau": number}),
    ):
        assert parse_policy(policy.label) == policy


def test_a_label_is_short() -> None:
    assert parse_policy("srpt").label == "srpt"
    assert parse_policy({"policy": "thresh-split", "d": 10}).label == "thresh-split:d=10"
    assert parse_policy("backlog-split: kappa=0.3, b=1").label == "backlog-split:kappa=0.3,b=1"


def test_policies_that_differ_a_little_are_different() -> None:
    run = simulate("high-load-2", ["thresh-split:d=5.0000001", "thresh-split:d=5.0000002"], jobs=1000)
    assert len(run) == 2


# ---- defaults ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["high-load-2", "high-load-4", "high-load-10", "low-load-4", "light-2"])
def test_the_default_threshold_gives_every_server_the_same_load(name: str) -> None:
    model = scenario(name)
    setting = set_up(parse_policy("thresh-split"), model.servers, model.spare, model.sizes)
    (d,) = setting.parameters
    small = model.arrival_rate * float(model.sizes.truncated_mean(d))
    assert small == pytest.approx(model.load * (model.servers - 1), rel=1e-9)


@pytest.mark.parametrize("name", ["impatient-100", "impatient-dhr-100"])
def test_the_default_class_boundary_fills_the_servers(name: str) -> None:
    model = scenario(name)
    both = [
        set_up(parse_policy(policy), model.servers, model.spare, model.sizes)
        for policy in ("loss-priority", "two-class")
    ]
    (tau,), (other,) = (setting.parameters for setting in both)
    assert tau == other
    assert float(model.sizes.truncated_mean(tau)) == pytest.approx(model.sizes.mean / model.load, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("dynasplit", (layout.LOG_MARGIN, 2.0)),
        ("dynasplit:margin=power", (layout.POWER_MARGIN, 0.5)),
        ("dynasplit:margin=constant", (layout.CONSTANT_MARGIN, 0.25)),
        ("dynasplit:shape=3", (layout.LOG_MARGIN, 3.0)),
        ("backlog-split", (1.0, 0.3)),
        ("backlog-split:b=2", (2.0, 0.3)),
        ("thresh-split:d=5", (5.0,)),
        ("loss-priority:tau=3", (3.0,)),
        ("two-class:tau=3", (3.0,)),
        ("srpt", ()),
    ],
)
def test_the_numbers_of_a_policy(text: str, numbers: tuple[float, ...]) -> None:
    assert set_up(parse_policy(text), 2, 0.4, PARETO).parameters.tolist() == list(numbers)


# ---- where a policy can run -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "servers", "spare", "message"),
    [
        ("thresh-split", 1, 0.2, "thresh-split: servers=1, allowed: at least 2"),
        ("thresh-split:d=5", 1, 0.2, "thresh-split: servers=1, allowed: at least 2"),
        ("dynasplit", 2, 0.0, "dynasplit: delta=0, allowed: above 0"),
        ("dynasplit", 2, -1.0, "dynasplit: delta=-1, allowed: above 0"),
        ("dynasplit:shape=1", 2, 0.4, "dynasplit: shape=1, allowed: at least 2"),
        ("dynasplit:margin=constant,shape=0.6", 2, 0.4, "dynasplit: shape=0.6, allowed: at most 0.5"),
        ("loss-priority", 2, 0.4, "loss-priority: tau is not given and load=0.8"),
        ("two-class", 2, 0.4, "two-class: tau is not given and load=0.8"),
    ],
)
def test_a_policy_that_cannot_run_says_why(text: str, servers: int, spare: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        set_up(parse_policy(text), servers, spare, PARETO)


@pytest.mark.parametrize(("d", "side"), [(0.4, "1.46 for one"), (4 / 3, ""), (1000.0, "1.57 for 1 server")])
def test_a_side_of_thresh_split_that_is_overloaded_is_noted(d: float, side: str) -> None:
    """A fault of the policy and not of the call: the run is of a system without a steady state."""
    policy = parse_policy({"policy": "thresh-split", "d": d})
    note = set_up(policy, 2, 0.4, PARETO).note
    assert (f"d={d:g} overloads one side" in note) == bool(side)
    assert side in note
    assert set_up(policy, 2, 0.4, PARETO, endless=False).note == ""
    assert set_up(policy, 2, -0.4, PARETO).note == ""


def test_reference_policies_are_those_that_can_run() -> None:
    every, overload = list(POLICIES), {"loss-priority", "two-class"}
    assert reference_policies(scenario("high-load-2")) == [name for name in every if name not in overload]
    assert reference_policies(scenario("impatient-100")) == [name for name in every if name != "dynasplit"]
    one = scenario("high-load-2", servers=1)
    assert set(every) - set(reference_policies(one)) == {"thresh-split", *overload}
    idle = Workload([0, 1, 9], [1, 2, 3])
    assert set(every) - set(reference_policies(idle, servers=2)) == overload
    batch = Workload([0, 0, 0], [1, 2, 3])
    assert set(every) - set(reference_policies(batch, servers=2)) == {"dynasplit"}
    for name in reference_policies(batch, servers=2):
        assert simulate(batch, name, servers=2).stats["counted"].sum() == 3


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("servers", [2, 32, 33, 34, 100])
def test_the_kernel_is_told_what_the_policy_is(name: str, servers: int) -> None:
    given = {"thresh-split": "thresh-split:d=3", "loss-priority": "loss-priority:tau=3"}
    spec = (given | {"two-class": "two-class:tau=3"}).get(name, name)
    setting = set_up(parse_policy(spec), servers, -1.0 if name == "loss-priority" else 0.5, EXPONENTIAL, endless=False)
    kernel = setting.kernel
    one_aside = kernel["family"] == layout.ANCHOR
    assert kernel["servers"] == (1 if name == "super-server" else servers)
    assert kernel["capacity"] == kernel["servers"] - one_aside
    assert kernel["dual"] == (kernel["capacity"] > layout.SMALL)
    assert setting.speed == (servers if name == "super-server" else 1.0)
    assert setting.parameters.dtype == np.float64
    preemptive = {"plcfs", "srpt", "psjf", "super-server", "loss-priority", "two-class"}
    if kernel["family"] == layout.INDEX:
        assert bool(kernel["preemptive"]) == (name in preemptive)
        assert bool(kernel["lossy"]) == (name == "loss-priority")
    assert set(kernel) <= set(layout.SYSTEM.names or ())


def test_a_given_delta_takes_the_place_of_the_scenarios() -> None:
    assert set_up(parse_policy("dynasplit:delta=0.25"), 2, -3.0, PARETO).spare == 0.25
    assert set_up(parse_policy("dynasplit"), 2, 0.4, PARETO).spare == 0.4
    assert set_up(parse_policy("srpt"), 2, 0.4, PARETO).spare == 0.4
