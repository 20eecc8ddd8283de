"""What a call of `simulate` is to run: checked arguments, streams and their lengths, policies set up."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from types import CodeType
from typing import Any, TypeAlias

import numpy as np

from queue_env.distributions import Law, law
from queue_env.distributions.checks import refuse
from queue_env.rules import POLICIES, Policy, parse_policy
from queue_env.scenarios import CLOCKS, Scenario, scenario
from queue_env.settings import Setting, set_up
from queue_env.system import System
from queue_env.workload import Chunk, Stream, Workload, check_servers

__all__ = ["Plan", "Source", "make_plan", "reference_policies", "signature"]

Source: TypeAlias = "str | Mapping[str, Any] | Scenario | Workload"

CHUNK = 32_768  # jobs handed to the kernel at once: their arrays fit the processor's cache
STREAMS = 20  # independent streams, the replications of batch means
MANY_JOBS = 400_000  # with fewer, one long stream in batches is better than many that each warm up
SETTLED = 20  # mean service times after which a stream that began empty may count as stationary
DEFAULT_JOBS = 1_000_000
MOST_JOBS = 10**15
PATIENCE_OF_STREAM = 10  # a stream goes on past its counted jobs for at most so many times their number


@dataclass(frozen=True)
class Plan:
    """One run.

    Attributes:
        scenario: the scenario, or None for a workload.
        workload: the workload, or None for a scenario.
        servers: number of servers n.
        load: rho.
        spare: delta = n(1-rho).
        sizes: law of the sizes, of a workload the empirical one.
        clock: patience clock, or None where no job has patience.
        settings: the policies, resolved.
        lengths: counted jobs of each stream.
        warmup: jobs of each stream before the counted ones.
        rows: rows of statistics of each stream.
        records: whether every job is recorded.
        horizon: time at which every stream ends at the latest.
        seed: of the streams.
    """

    scenario: Scenario | None
    workload: Workload | None
    servers: int
    load: float
    spare: float
    sizes: Law = field(repr=False)
    clock: str | None
    settings: tuple[Setting, ...]
    lengths: tuple[int, ...]
    warmup: int
    rows: int
    records: bool
    horizon: float
    seed: int

    @property
    def total(self) -> int:
        """Jobs to simulate under all policies, but for those after the counted ones."""
        return (sum(self.lengths) + self.warmup * len(self.lengths)) * len(self.settings)

    def identity(self) -> dict[str, Any]:
        """What two runs must share for one to continue the other; JSON-able."""
        labels = [signature(setting.policy) for setting in self.settings]
        source = self.scenario.to_dict() if self.scenario is not None else _fingerprint(self.workload)
        keep = {name: getattr(self, name) for name in ("servers", "clock", "lengths", "warmup", "rows", "seed")}
        return {"source": source, "policies": labels, **keep, "horizon": repr(self.horizon)}

    def chunks(self, stream: int) -> Iterator[Chunk]:
        """Yield the jobs of a stream, without end for a scenario."""
        if self.workload is not None:
            yield from _slices(self.workload)
            return
        assert self.scenario is not None
        seeds = np.random.SeedSequence(self.seed).spawn(len(self.lengths))
        source: Stream = self.scenario.stream(seeds[stream])
        count = min(CHUNK, max(self.warmup + self.lengths[stream], 1024))
        while True:
            yield source.chunk(count)

    def system(self, setting: Setting, stream: int) -> System:
        """Build the empty system in which a policy runs over a stream."""
        last = self.warmup + self.lengths[stream]
        endless = self.workload is None
        return System(
            setting,
            clock=self.clock,
            counted=(self.warmup, last),
            rows=self.rows,
            recorded=last if self.records else 0,
            relative=endless,
            window_to=last - 1 if endless else None,
            horizon=self.horizon,
        )

    def most_jobs(self, setting: Setting, stream: int) -> int:
        """Return after how many jobs a stream is given up whose counted jobs do not all leave."""
        if setting.note:
            return self.warmup + self.lengths[stream]
        return self.warmup + (1 + PATIENCE_OF_STREAM) * max(self.lengths[stream], CHUNK)


def signature(policy: Policy) -> str:
    """The label, and for a policy of the user what its function does, so far as its code and what it captures say."""
    if policy.user is None:
        return policy.label
    function = getattr(policy.user.function, "py_func", policy.user.function)
    captured = [repr(cell.cell_contents) for cell in getattr(function, "__closure__", None) or ()]
    code = getattr(function, "__code__", None)
    known = getattr(function, "__globals__", {})
    named = [] if code is None else [repr(known[name]) for name in code.co_names if isinstance(known.get(name), Real)]
    rule = repr((_body(code), captured, named, policy.user.parameters, dict(policy.user.kernel)))
    return f"{policy.label} {hashlib.sha256(rule.encode()).hexdigest()[:16]}"


def _body(code: CodeType | None) -> Any:
    if code is None:
        return None
    constants = [_body(item) if isinstance(item, CodeType) else item for item in code.co_consts]
    return code.co_code, constants, code.co_names


def _slices(workload: Workload) -> Iterator[Chunk]:
    columns = (workload.arrival_times, workload.sizes, workload.patience)
    for start in range(0, len(workload), CHUNK):
        # Copies, since the kernel takes writable arrays only.
        yield Chunk(*(None if column is None else column[start : start + CHUNK].copy() for column in columns))  # type: ignore[arg-type]


def _fingerprint(workload: Workload | None) -> dict[str, Any]:
    assert workload is not None
    digest = hashlib.sha256()
    for column in (workload.arrival_times, workload.sizes, workload.patience):
        digest.update(b"none" if column is None else column.tobytes())
    return {"jobs": len(workload), "sha256": digest.hexdigest()}


def make_plan(
    source: Source,
    policies: Sequence[Any],
    *,
    jobs: int | None = None,
    seed: int = 0,
    servers: int | None = None,
    clock: str | None = None,
    records: bool = False,
    warmup: int | None = None,
    streams: int | None = None,
    horizon: float | None = None,
) -> Plan:
    """Check the arguments of `simulate` and settle what they leave open.

    Raises:
        ValueError: names the argument, its value and what is allowed.
    """
    if not policies:
        refuse("simulate", "policy", "at least one policy", policies)
    parsed = [parse_policy(policy) for policy in policies]
    if len({policy.label for policy in parsed}) < len(parsed):
        refuse("simulate", "policy", "all different", [policy.label for policy in parsed])
    if horizon is not None and not (isinstance(horizon, Real) and horizon > 0):
        refuse("simulate", "horizon", "a time above 0, or None", horizon)
    if clock is not None and clock not in CLOCKS:
        refuse("simulate", "clock", f"one of {', '.join(CLOCKS)}", clock)
    seed = _integer("seed", seed, 0, 2**128)
    ends = {"horizon": np.inf if horizon is None else float(horizon), "seed": seed, "records": records}
    if isinstance(source, Workload):
        _only_for_scenarios(jobs=jobs, warmup=warmup, streams=streams)
        return _workload_plan(source, parsed, servers, clock or "queue", ends)
    changes = {"servers": servers, "clock": clock}
    given = scenario(source, **{name: value for name, value in changes.items() if value is not None})
    settling = math.ceil(SETTLED * given.arrival_rate * given.sizes.mean)
    return _scenario_plan(given, parsed, _lengths(jobs, streams, warmup, records, settling), ends)


def _integer(name: str, value: object, least: int, most: int = MOST_JOBS) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # such as 1e7
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= operator.index(value) <= most:
        refuse("simulate", name, f"an integer, at most {most:g} and at least {least}", value)
    return operator.index(value)


def _only_for_scenarios(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            refuse("simulate", name, "None with a workload, which says itself how many jobs there are", value)


def _workload_plan(
    workload: Workload, policies: list[Policy], servers: int | None, clock: str, ends: Mapping[str, Any]
) -> Plan:
    if servers is None:
        refuse("simulate", "servers", "given with a workload", servers)
    servers = check_servers(servers)
    times = workload.arrival_times
    load = workload.load(servers) if times[-1] > times[0] else np.inf
    sizes = law({"law": "empirical", "values": workload.sizes.tolist()})
    spare = servers * (1 - load)
    return Plan(
        scenario=None,
        workload=workload,
        servers=servers,
        load=load,
        spare=spare,
        sizes=sizes,
        clock=None if workload.patience is None else clock,
        settings=tuple(set_up(policy, servers, spare, sizes, endless=False) for policy in policies),
        lengths=(len(workload),),
        warmup=0,
        rows=min(STREAMS, len(workload)),
        **ends,
    )


def _lengths(
    jobs: int | None, streams: int | None, warmup: int | None, records: bool, settling: int
) -> tuple[tuple[int, ...], int, int]:
    """Return the counted jobs of each stream, the warm-up of each (at least `settling`), and the rows of each."""
    jobs = _integer("jobs", DEFAULT_JOBS if jobs is None else jobs, 1)
    if records and (streams or 1) > 1:
        refuse("simulate", "streams", "1 with records, which are of one stream", streams)
    if records and warmup:
        refuse("simulate", "warmup", "0 with records, which are of all jobs", warmup)
    if streams is None:
        streams = STREAMS if jobs >= max(MANY_JOBS, STREAMS * settling) and not records else 1
    streams = min(_integer("streams", streams, 1), jobs)
    lengths = tuple(jobs // streams + (i < jobs % streams) for i in range(streams))
    if warmup is None:
        warmup = 0 if records else max(lengths[0] // 10, min(1000, lengths[0]), settling)
    rows = min(-(-STREAMS // streams), lengths[-1])
    return lengths, _integer("warmup", warmup, 0), rows


def _scenario_setting(given: Scenario, policy: Policy) -> Setting:
    setting = set_up(policy, given.servers, given.spare, given.sizes)
    if policy.name == "ps" and policy.user is None and given.load >= 1 and given.clock == "queue":
        note = "ps: no rate is ever zero, so the clock 'queue' never runs, nobody leaves, and there is no steady state"
        return replace(setting, note=note)
    return setting


def _scenario_plan(
    given: Scenario,
    policies: list[Policy],
    lengths: tuple[tuple[int, ...], int, int],
    ends: Mapping[str, Any],
) -> Plan:
    return Plan(
        scenario=given,
        workload=None,
        servers=given.servers,
        load=given.load,
        spare=given.spare,
        sizes=given.sizes,
        clock=None if given.patience is None else given.clock,
        settings=tuple(_scenario_setting(given, policy) for policy in policies),
        lengths=lengths[0],
        warmup=lengths[1],
        rows=lengths[2],
        **ends,
    )


def reference_policies(source: Source, servers: int | None = None) -> list[str]:
    """Return the labels of all reference policies that can run on a scenario, or on a workload with so many servers.

    Left out are those that need spare capacity where there is none, and the two of two classes where there is some.

    Raises:
        ValueError: the scenario is not allowed, or servers is not given with a workload.
    """
    make_plan(source, ["srpt"], servers=servers)
    names = []
    for name in POLICIES:
        try:
            make_plan(source, [name], servers=servers)
        except ValueError:
            continue
        names.append(name)
    return names
