"""The reference policies as baselines: what each has to know, what is proven of it, and the agents that act by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from baselines.agent import Agent
from baselines.backlog_split import BacklogSplit
from baselines.dynasplit import DynaSplit
from baselines.fcfs import FCFS
from baselines.las import LAS
from baselines.lcfs import LCFS
from baselines.network import NetworkAgent
from baselines.plcfs import PLCFS
from baselines.ps import PS
from baselines.psjf import PSJF
from baselines.sjf import SJF
from baselines.split import Split
from baselines.srpt import SRPT
from baselines.thresh_split import ThreshSplit
from baselines.two_class import TwoClass
from queue_env.action import KINDS
from queue_env.config import NOT_AS_RULES
from queue_env.distributions.checks import refuse
from queue_env.network import NetworkPolicy, read_network, shipped_networks
from queue_env.plan import Source, make_plan, reference_policies
from queue_env.rules import PAPER_D, PAPER_I, POLICIES, OnePolicy, PolicyInfo, parse_policy

__all__ = [
    "AGENTS",
    "REGISTRY",
    "Baseline",
    "Knowledge",
    "LearnedPolicy",
    "expressible",
    "learned_policies",
    "make_agent",
    "policies",
]

Knowledge: TypeAlias = Literal["sizes", "attained service", "load", "law"]


@dataclass(frozen=True)
class Baseline:
    """A reference policy as a baseline.

    Attributes:
        name: of the policy; as a label it runs with its defaults.
        information: what it must know beside who is present and the order of arrival: the jobs' sizes, their
            attained service, the load, the law of the sizes. What only a default needs counts too.
        guarantee: what theory says of it, or that it says nothing.
        source: where the guarantee is proven or stated; empty where there is none.
        tuning: which of its parameters to search for a scenario, with ``python -m train.tune``; empty if none.
    """

    name: str
    information: tuple[Knowledge, ...]
    guarantee: str
    source: str = ""
    tuning: tuple[str, ...] = ()

    @property
    def policy(self) -> PolicyInfo:
        """Its law and its parameters."""
        return POLICIES[self.name]


_BOOK = "Harchol-Balter, Performance Modeling and Design of Computer Systems (2013)"
_ENTRIES = (
    Baseline(
        "srpt",
        ("sizes",),
        "heavy tails: weakly tail optimal; mean response optimal as load -> 1; overload with patience: the largest "
        "throughput as servers -> infinity",
        f"{PAPER_D} §5 and §1.1; {PAPER_I}, Proposition 3",
    ),
    Baseline(
        "split",
        ("sizes",),
        "heavy tails: strongly tail optimal where delta > 1; where delta <= 1 its normalised tail grows without bound",
        f"{PAPER_D} §1 and §5",
    ),
    Baseline(
        "thresh-split",
        ("sizes", "law"),
        "heavy tails, delta <= 1: arbitrarily close to strongly tail optimal by the choice of d, but not with the "
        "large jobs in FCFS order, as here: those behind a huge one wait, and the normalised tail grows without bound",
        f"{PAPER_D} §1; for FCFS: Pakes, On the tails of waiting-time distributions (1975)",
        tuning=("d",),
    ),
    Baseline(
        "dynasplit",
        ("sizes", "load"),
        "heavy tails: strongly tail optimal where 0 < delta <= 1; proven for the default margin",
        f"{PAPER_D}, Theorems 3.3 and 4.21",
        tuning=("margin", "shape"),
    ),
    Baseline("backlog-split", ("sizes",), "nothing is proven", tuning=("b", "kappa")),
    Baseline(
        "psjf",
        ("sizes",),
        "one server, heavy tails: strongly tail optimal, as every SMART policy",
        f"{PAPER_D} §1; Wierman, Harchol-Balter, Osogami, Nearly insensitive bounds on SMART scheduling (2005)",
    ),
    Baseline(
        "las",
        ("attained service",),
        "one server, heavy tails: strongly tail optimal",
        f"{PAPER_D} §1 (foreground-background)",
    ),
    Baseline(
        "ps",
        (),
        "one server: strongly tail optimal for heavy tails; the same mean slowdown for every size",
        f"{PAPER_D} §1; {_BOOK}, section 30.1",
    ),
    Baseline(
        "sjf",
        ("sizes",),
        "one server, heavy tails: long delays behind a large job in service, as under every policy without preemption",
        f"{PAPER_D} §2.1",
    ),
    Baseline(
        "fcfs",
        (),
        "one server: weakly tail optimal for light tails, long delays for heavy ones; overload with patience of "
        "decreasing hazard rate: the least waiting of blind policies as servers -> infinity",
        f"{PAPER_D} §6 and §2.1; {PAPER_I}, quoting Proposition 3 of its [2]",
    ),
    Baseline(
        "lcfs",
        (),
        "overload with patience of constant or increasing hazard rate: the least waiting of blind policies as "
        "servers -> infinity",
        f"{PAPER_I}, quoting Proposition 3 of its [2]",
    ),
    Baseline(
        "plcfs",
        (),
        "one server: mean response depends on the mean size and the load only",
        f"{_BOOK}, section 30.2",
    ),
    Baseline(
        "two-class",
        ("sizes", "load", "law"),
        "overload with patience: as srpt the largest throughput, P[S <= tau] of the arrivals, as servers -> infinity",
        f"{PAPER_I}, Theorem 2 and Proposition 3: the class up to tau is that of its system L",
        tuning=("tau",),
    ),
    Baseline(
        "super-server",
        ("sizes",),
        "heavy tails: no policy of n servers has a lighter tail, asymptotically; to be read as a bound",
        f"{PAPER_D} §2.2, (6)",
    ),
    Baseline(
        "loss-priority",
        ("sizes", "load", "law"),
        "overload: sizes up to tau meet an M/GI/s/s queue, as if there were no others; the proof of srpt's limits "
        "couples srpt to it",
        f"{PAPER_I}, system L",
    ),
)

REGISTRY: dict[str, Baseline] = {baseline.name: baseline for baseline in _ENTRIES}
"""One baseline for each policy, in the order in which they are listed and run."""


def policies(source: Source, servers: int | None = None) -> list[str]:
    """The labels of all baselines that can run on a scenario, in the order of `REGISTRY`: srpt first.

    Args:
        source: a scenario (its name, a mapping, or a `Scenario`), or a `Workload`.
        servers: number of servers; needed for a workload.

    Raises:
        ValueError: there is no such scenario, or the servers are missing or not allowed.
    """
    make_plan(source, [next(iter(REGISTRY))], servers=servers)  # runs everywhere: an error here is of the source
    able = reference_policies(source, servers)
    return [name for name in REGISTRY if name in able]


# ---- learned policies ----------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedPolicy:
    """A policy that was learned and comes with the package; as a label its name runs it.

    Attributes:
        name: of the policy.
        scenarios: on which it was trained.
        features: what its network sees.
        widths: of the network's layers, the inputs first.
        command: that trained it.
    """

    name: str
    scenarios: tuple[str, ...]
    features: tuple[str, ...]
    widths: tuple[int, ...]
    command: str


def learned_policies() -> dict[str, LearnedPolicy]:
    """The learned policies that come with the package, by name."""
    found = {}
    for name, path in shipped_networks().items():
        network, training = read_network(path)
        scenarios, command = tuple(training["scenarios"]), str(training["command"])
        found[name] = LearnedPolicy(name, scenarios, network.features, network.widths, command)
    return found


# ---- agents --------------------------------------------------------------------------------------

_CLASSES: tuple[type[Agent], ...] = (
    SRPT,
    Split,
    ThreshSplit,
    DynaSplit,
    BacklogSplit,
    PSJF,
    LAS,
    PS,
    SJF,
    FCFS,
    LCFS,
    PLCFS,
    TwoClass,
)

AGENTS: dict[str, type[Agent]] = {agent.name: agent for agent in _CLASSES}
"""The agent of each policy that can act in the environment, in the order of `REGISTRY`."""


def make_agent(policy: OnePolicy, env: Any) -> Agent:
    """Make the agent that acts by a reference policy in an environment.

    Args:
        policy: a name with parameters, such as "dynasplit:margin=power,shape=0.5", or what else
            `queue_env.rules.parse_policy` reads, such as "learned:FILE.json". Defaults that depend on load or sizes
            are those of the scenario.
        env: a `QueueEnv` or `QueueVectorEnv`, wrapped or not, or Stable-Baselines3's view of one.

    Raises:
        ValueError: there is no such agent, the actions of the environment cannot express it, its observations do not
            show what it needs, or a wrapper has changed either.

    Examples:
        >>> import gymnasium, queue_env
        >>> env = gymnasium.make("queue_env/MGn-v0", action="anchor")
        >>> agent = make_agent("dynasplit", env)
        >>> action, _ = agent.predict(env.reset(seed=1)[0])
    """
    parsed = parse_policy(policy)
    if isinstance(parsed.user, NetworkPolicy):
        return NetworkAgent(env, parsed)
    if parsed.name in NOT_AS_RULES:
        allowed = f"one of {', '.join(AGENTS)}; {parsed.name} has no agent, for {NOT_AS_RULES[parsed.name]}"
        refuse("make_agent", "policy", allowed, policy)
    if parsed.user is not None:
        refuse("make_agent", "policy", f"one of {', '.join(AGENTS)}, not a policy of your own", parsed.name)
    return AGENTS[parsed.name](env, parsed)


def expressible(action: str) -> tuple[str, ...]:
    """Return the policies that can be expressed in a kind of action: "allocation", "anchor", "rule", ...

    Raises:
        ValueError: there is no such kind.
    """
    if action not in KINDS:
        refuse("expressible", "action", f"one of {', '.join(KINDS)}", action)
    return tuple(name for name, agent in AGENTS.items() if action in agent.expressed_as)
