"""`simulate`: records, reproducibility, interruption, checkpoints, the state of a system, and refusals."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from queue_env import Comparison, Result, Workload, law, simulate, simulator
from queue_env.plan import make_plan
from queue_env.rules import parse_policy
from queue_env.settings import set_up
from queue_env.system import System
from queue_env.workload import Chunk

CONSERVING = (
    "fcfs", "lcfs", "plcfs", "srpt", "psjf", "sjf", "ps", "las", "split", "dynasplit:delta=0.5", "backlog-split",
)  # fmt: skip
EVERY = (*CONSERVING, "thresh-split", "super-server", "loss-priority:tau=1", "two-class:tau=1")
RESULTS = (
    "stats", "response_counts", "slowdown_counts", "size_counts", "window", "number_area", "busy_area",
    "served_in_window", "little_gaps",
)  # fmt: skip
ROOT = Path(__file__).parents[1]


def assert_same(one: Result, other: Result) -> None:
    """To the bit."""
    for name in RESULTS:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    assert (one.policy, one.jobs, one.simulated) == (other.policy, other.jobs, other.simulated)


def workload(seed: int = 0, jobs: int = 3000, patience: float | None = None, load: float = 1.1) -> Workload:
    rng = np.random.default_rng(seed)
    arrivals, sizes = np.cumsum(rng.exponential(1 / (2 * load), jobs)), rng.exponential(1.0, jobs)
    return Workload(arrivals, sizes, None if patience is None else rng.exponential(patience, jobs))


# ---- records and workloads --------------------------------------------------------------------------------


@pytest.mark.parametrize("patient", [True, False])
def test_records_have_one_row_a_job_in_order_of_arrival(patient: bool) -> None:
    jobs = workload(patience=None if patient else 1.0)
    records = simulate(jobs, "srpt", servers=2, records=True).records
    assert records is not None
    times = ["start_time", "departure_time", "waiting_time", "outcome"]
    assert list(records) == ["arrival_time", "size", "patience", *times]
    assert {name: column.dtype.kind for name, column in records.items()} == {
        **dict.fromkeys(records, "f"),
        "outcome": "i",
    }
    assert {column.shape for column in records.values()} == {(len(jobs),)}
    np.testing.assert_array_equal(records["arrival_time"], jobs.arrival_times)
    np.testing.assert_array_equal(records["size"], jobs.sizes)
    np.testing.assert_array_equal(records["patience"], np.inf if jobs.patience is None else jobs.patience)


def test_records_say_how_each_job_left() -> None:
    jobs = Workload([0, 0, 0, 0.5, 9], [4, 1, 1, 2, 1], [9, 9, 0.5, 9, 9])
    records = simulate(jobs, "fcfs", servers=1, records=True, horizon=6.5).records
    assert records is not None
    np.testing.assert_array_equal(records["outcome"], [0, 0, 1, 2, 2])
    np.testing.assert_array_equal(records["start_time"], [0, 4, np.nan, 5, np.nan])
    np.testing.assert_array_equal(records["departure_time"], [4, 5, 0.5, np.nan, np.nan])
    np.testing.assert_array_equal(records["waiting_time"], [0, 4, 0.5, np.nan, np.nan])


def test_records_of_a_scenario_are_those_of_its_jobs_as_a_workload() -> None:
    run = simulate("impatient-100", "srpt", jobs=50_000, records=True, seed=3)
    records = run.records
    assert records is not None
    assert {len(column) for column in records.values()} == {50_000}
    jobs = Workload(records["arrival_time"], records["size"], records["patience"])
    again = simulate(jobs, "srpt", servers=100, records=True).records
    assert again is not None
    early = records["arrival_time"] < 0.9 * records["arrival_time"][-1]  # later ones may meet jobs after the last
    assert (records["outcome"] == again["outcome"])[early].all()
    np.testing.assert_allclose(records["departure_time"][early], again["departure_time"][early], rtol=1e-11)


@pytest.mark.parametrize("policy", EVERY)
def test_a_single_job(policy: str) -> None:
    result = simulate(Workload([3], [4]), policy, servers=2)
    assert result.mean_response == (2 if policy == "super-server" else 4)
    assert result.stats["counted"].tolist() == [1]
    assert result.load == np.inf


@pytest.mark.parametrize("policy", EVERY)
def test_ten_thousand_servers(policy: str) -> None:
    jobs = workload(1, 30_000, load=4000.0)
    result = simulate(jobs, policy, servers=10_000)
    assert result.stats["served"].sum() == len(jobs)
    if policy not in ("super-server", "thresh-split"):
        assert result.max_slowdown == pytest.approx(1, rel=1e-9)
        assert result.mean_waiting == 0


def test_a_workload_in_overload_runs_until_it_is_empty() -> None:
    result = simulate(workload(load=3.0), list(CONSERVING), servers=2)
    assert {run.stats["served"].sum() for run in result.values()} == {3000}
    assert {run.present for run in result.values()} == {0}


# ---- the same again ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["high-load-2", "impatient-dhr-100"])
def test_the_number_of_threads_does_not_matter(name: str) -> None:
    policies: list[Any] = ["srpt", "ps", "las", "backlog-split"]
    runs = [simulate(name, policies, jobs=40_000, streams=8, seed=2, threads=threads) for threads in (1, 2, 7, 1)]
    for run in runs[1:]:
        for policy in policies:
            assert_same(run[policy], runs[0][policy])
    assert simulate(name, "srpt", jobs=40_000, streams=8, seed=3).mean_response != runs[0]["srpt"].mean_response


@pytest.mark.parametrize("source", ["high-load-2", "impatient-100", "workload"])
def test_policies_together_do_what_each_does_alone(source: str) -> None:
    options: dict[str, Any] = {"jobs": 20_000, "streams": 2} if source != "workload" else {"servers": 2}
    policies: list[Any] = [name for name in EVERY if source == "impatient-100" or "loss" not in name]
    given = workload(patience=2.0) if source == "workload" else source
    together = simulate(given, policies, **options)
    assert isinstance(together, Comparison)
    assert list(together) == policies
    for policy in policies:
        assert_same(together[policy], simulate(given, policy, **options))


# ---- interruption and checkpoints -------------------------------------------------------------------------


@contextmanager
def interrupted_after(calls: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the progress hook of a run raise KeyboardInterrupt."""
    seen = 0

    @contextmanager
    def hook(*arguments: Any) -> Iterator[Callable[[int], None]]:
        def advance(jobs: int) -> None:
            nonlocal seen
            seen += 1
            if seen > calls:
                time.sleep(0.2)  # the streams before this one are taken in
                raise KeyboardInterrupt

        yield advance

    with monkeypatch.context() as patch:
        patch.setattr(simulator, "job_progress", hook)
        yield


OPTIONS: dict[str, Any] = {"jobs": 40_000, "streams": 8, "warmup": 100, "seed": 4}
POLICIES: list[Any] = ["srpt", "thresh-split", "las"]


def test_an_interrupted_run_keeps_the_streams_that_had_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with interrupted_after(5, monkeypatch):
        part = simulate("high-load-2", POLICIES, **OPTIONS, threads=1)
    whole = simulate("high-load-2", POLICIES, **OPTIONS)
    for policy in POLICIES:
        assert part[policy].interrupted
        assert not whole[policy].interrupted
        assert 1 <= part[policy].streams < whole[policy].streams == 8
        rows = len(part[policy].stats)
        assert part[policy].stats.tobytes() == whole[policy].stats[:rows].tobytes()
        assert part[policy].jobs == part[policy].streams * 5000
    with interrupted_after(0, monkeypatch), pytest.raises(KeyboardInterrupt):
        simulate("high-load-2", POLICIES, **OPTIONS)


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.npz"
    for calls in (4, 3):
        with interrupted_after(calls, monkeypatch):
            simulate("high-load-2", POLICIES, **OPTIONS, threads=1, checkpoint=file)
    steps: list[int] = []
    monkeypatch.setattr(System, "feed", counted(System.feed, steps))
    resumed = simulate("high-load-2", POLICIES, **OPTIONS, checkpoint=file)
    done = len(steps)
    whole = simulate("high-load-2", POLICIES, **OPTIONS)
    assert 0 < done < len(steps) - done
    for policy in POLICIES:
        assert_same(resumed[policy], whole[policy])
    steps.clear()
    assert_same(simulate("high-load-2", POLICIES, **OPTIONS, checkpoint=file)["las"], whole["las"])
    assert not steps
    assert list(tmp_path.iterdir()) == [file]


def counted(method: Callable[..., bool], steps: list[int]) -> Callable[..., bool]:
    def feed(self: System, chunk: Chunk) -> bool:
        steps.append(1)
        return method(self, chunk)

    return feed


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_process_leaves_a_checkpoint(tmp_path: Path, kind: signal.Signals) -> None:
    file = tmp_path / "run.npz"
    options: dict[str, Any] = {"source": "light-2", "jobs": 10_000_000, "seed": 5, "checkpoint": str(file)}
    code = f"from queue_env import simulate; r = simulate(**{options!r}); print(r.interrupted, r.streams)"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(kind)
    output = process.communicate(timeout=60)[0].split()
    assert file.exists()
    if kind == signal.SIGINT:
        assert output[0] == "True"
        assert 1 <= int(output[1]) < 20
    resumed, whole = (simulate(**{**options, "checkpoint": path}) for path in (file, None))
    assert_same(resumed, whole)


CHANGES: list[dict[str, Any]] = [
    {"seed": 5}, {"jobs": 40_001}, {"streams": 7}, {"warmup": 99}, {"policy": "ps"}, {"policy": ["srpt", "ps"]},
    {"servers": 3}, {"horizon": 1e6}, {"source": "low-load-4"},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_checkpoint_of_another_run_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    arguments = {"source": "high-load-2", "policy": "srpt", **OPTIONS, "checkpoint": tmp_path / "run.npz"}
    simulate(**arguments)
    with pytest.raises(ValueError, match=r"checkpoint .*run\.npz.* must be of a run with"):
        simulate(**{**arguments, **change})


def test_the_checkpoint_of_another_workload_or_policy_is_refused(tmp_path: Path) -> None:
    """Runs that look alike: the same total work and span, and the same label."""

    def index(factor: float) -> Any:
        from queue_env import index_policy

        def rule(size: float, remaining: float, number: float, parameters: NDArray[np.float64]) -> float:
            return float(parameters[0] * size)

        return index_policy(rule, name="mine", parameters=[factor])

    jobs = Workload([0, 0, 2], [1.0000001, 1.0000003, 3], [9, 9, 9])
    pairs: list[tuple[tuple[Workload, Any], tuple[Workload, Any]]] = [
        ((jobs, "fcfs"), (Workload([0, 0, 2], [1.0000001, 1.0000003, 3], [0, 0, 0]), "fcfs")),
        ((jobs, "fcfs"), (Workload([0, 0, 2], [1.0000003, 1.0000001, 3], [9, 9, 9]), "fcfs")),
        ((jobs, "fcfs"), (Workload([0, 1, 2], [1.0000001, 1.0000003, 3], [9, 9, 9]), "fcfs")),
        ((jobs, "thresh-split:d=1.0000000"), (jobs, "thresh-split:d=1.0000002")),
        ((jobs, index(1.0)), (jobs, index(-1.0))),
    ]
    accepted = []
    for number, (one, other) in enumerate(pairs):
        file = tmp_path / f"{number}.npz"
        simulate(one[0], one[1], servers=2, checkpoint=file)
        try:
            simulate(other[0], other[1], servers=2, checkpoint=file)
        except ValueError:
            continue
        accepted.append(number)
    assert accepted == []


@pytest.mark.parametrize("kind", ["empty", "text", "cut", "flipped", "magic", "array", "other"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "run.npz"
    simulate("high-load-2", "srpt", **OPTIONS, checkpoint=file)
    content = file.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 0xFF
    if kind == "array":
        with file.open("wb") as stream:
            np.save(stream, np.zeros(3))
    elif kind == "other":
        np.savez(file, something=np.zeros(3))
    else:
        contents = {
            "empty": b"",
            "text": b"hello",
            "cut": content[:-100],
            "flipped": bytes(flipped),
            "magic": b"PK\x03\x04",
        }
        file.write_bytes(contents[kind])
    with pytest.raises(ValueError, match=r"checkpoint must be a file that simulate wrote.*run\.npz"):
        simulate("high-load-2", "srpt", **OPTIONS, checkpoint=file)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_checkpoint_with_one_wrong_byte_is_refused_or_read_right(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    options: dict[str, Any] = {"jobs": 2000, "streams": 2, "warmup": 10}
    whole = simulate("light-2", "srpt", **options, checkpoint=file)
    content = file.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(content), 150):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        file.write_bytes(bytes(damaged))
        try:
            again = simulate("light-2", "srpt", **options, checkpoint=file)
        except ValueError:
            continue
        assert_same(again, whole)


# ---- the state of a system --------------------------------------------------------------------------------


def pieces(jobs: Workload, cuts: list[int]) -> Iterator[Chunk]:
    """A workload as the chunks of a stream: their times count from the last arrival before."""
    columns = (jobs.arrival_times, jobs.sizes, jobs.patience)
    last = 0.0
    for start, end in zip([0, *cuts], [*cuts, len(jobs)], strict=True):
        chunk = Chunk(*(None if column is None else column[start:end].copy() for column in columns))  # type: ignore[arg-type]
        yield chunk._replace(arrival_times=chunk.arrival_times - last)
        last = float(jobs.arrival_times[end - 1])


def new_system(
    policy: str, jobs: Workload, clock: str | None = None, servers: int = 2, relative: bool = True
) -> System:
    sizes = law({"law": "exponential", "mean": 1.0})
    setting = set_up(parse_policy(policy), servers, -0.5, sizes, endless=False)
    return System(setting, clock=clock, counted=(0, len(jobs)), recorded=len(jobs), relative=relative)


@pytest.mark.parametrize("clock", [None, "queue", "fractional", "sojourn"])
@pytest.mark.parametrize("policy", EVERY)
def test_a_restored_system_goes_on_bit_for_bit(policy: str, clock: str | None) -> None:
    """With growth of the memory on both sides of the boundary, and into a system that had run itself."""
    jobs = workload(6, patience=None if clock is None else 900.0, load=1.6)
    name = "thresh-split:d=1" if policy == "thresh-split" else policy
    one, other = (new_system(name, jobs, clock) for _ in range(2))
    chunks = list(pieces(jobs, [700, 1400, 2200]))
    for chunk in chunks[:2]:
        one.feed(chunk)
    state = one.state()
    other.feed(chunks[3])
    other.restore(state)
    for system in (one, other):
        for chunk in chunks[2:]:
            system.feed(chunk)
        system.drain()
    for name, array in one.state().items():
        assert array.tobytes() == other.state()[name].tobytes(), name
    assert one.pending == 0


@pytest.mark.parametrize("clock", [None, "queue", "fractional", "sojourn"])
@pytest.mark.parametrize("policy", EVERY)
def test_how_a_stream_is_cut_does_not_matter(policy: str, clock: str | None) -> None:
    """One of the cuts is where the memory is just full, so that it grows at the first arrival of the next chunk."""
    rng = np.random.default_rng(7)
    gaps = np.concatenate((np.full(256, 1 / 1024), [5.0], rng.exponential(0.1, 300)))
    sizes = np.concatenate((rng.uniform(50, 100, 256), rng.exponential(0.01, 301)))
    jobs = Workload(np.cumsum(gaps), sizes, None if clock is None else np.full(gaps.size, 1e9))
    name = "thresh-split:d=1" if policy == "thresh-split" else policy
    departures = []
    for cuts in ([], [256], [1, 2, 255, 257, 300, 301]):
        system = new_system(name, jobs, clock, servers=1 if policy != "thresh-split" else 2)
        for chunk in pieces(jobs, cuts):
            system.feed(chunk)
        system.drain()
        departures.append(system.memory.records["departure_time"])
    np.testing.assert_allclose(departures[1], departures[0], rtol=1e-12)
    np.testing.assert_allclose(departures[2], departures[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("srpt", "ps"), ("srpt", "fcfs"), ("srpt", "super-server"), ("sjf", "psjf"), ("lcfs", "plcfs"),
        ("dynasplit:delta=0.5", "split"), ("thresh-split:d=1", "thresh-split:d=2"),
    ],
)  # fmt: skip
def test_the_state_of_another_policy_is_refused(one: str, other: str) -> None:
    jobs = workload(jobs=10)
    with pytest.raises(ValueError, match="state"):
        new_system(other, jobs).restore(new_system(one, jobs).state())


def test_a_stream_needs_no_more_memory_when_it_is_longer() -> None:
    peaks = []
    for jobs in (200_000, 200_000, 2_000_000):
        tracemalloc.start()
        simulate("light-2", ["srpt", "ps"], jobs=jobs, streams=1, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1]
    plan = make_plan("light-2", ["las"], jobs=200_000, streams=1)
    system = plan.system(plan.settings[0], 0)
    for chunk in plan.chunks(0):
        if system.feed(chunk):
            break
    assert len(system.memory.jobs) <= 256


# ---- refusals ---------------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"jobs": 0}, "jobs must be .* at least 1, got 0"),
    ({"jobs": 1.5}, "jobs must be .* got 1.5"),
    ({"jobs": 10**30}, "jobs must be "),
    ({"seed": -1}, "seed must be .* got -1"),
    ({"seed": 0.5}, "seed must be .* got 0.5"),
    ({"servers": 0}, "servers must be .* got 0"),
    ({"servers": 10_001}, "servers must be .* 10000, got 10001"),
    ({"servers": 2.5}, "servers must be .* got 2.5"),
    ({"clock": "wall"}, "clock must be one of queue, fractional, sojourn, got 'wall'"),
    ({"warmup": -1}, "warmup must be .* got -1"),
    ({"streams": 0}, "streams must be .* got 0"),
    ({"streams": 2.5}, "streams must be .* got 2.5"),
    ({"threads": 0}, "threads must be .* got 0"),
    ({"threads": 1.5}, "threads must be .* got 1.5"),
    ({"horizon": 0}, "horizon must be .* got 0"),
    ({"horizon": float("nan")}, "horizon must be .* got nan"),
    ({"horizon": "soon"}, "horizon must be .* got 'soon'"),
    ({"checkpoint": 5}, "checkpoint must be .* got 5"),
    ({"checkpoint": "/no/such/folder/run.npz"}, "checkpoint must be .* got '/no/such"),
    ({"records": True, "streams": 2}, "streams must be 1 with records.* got 2"),
    ({"records": True, "warmup": 5}, "warmup must be 0 with records.* got 5"),
    ({"records": True, "checkpoint": "x"}, "checkpoint must be None with records.* got 'x'"),
    ({"policy": []}, "policy must be at least one"),
    ({"policy": ["srpt", "srpt"]}, "policy must be all different"),
    ({"policy": None}, "policy=None, allowed"),
    ({"policy": "srtp"}, "policy='srtp' .* did you mean 'srpt'.* allowed"),
    ({"source": "light-3"}, "name must be one of .* got 'light-3'"),
    ({"source": 7}, "must be .* got 7"),
    (
        {"source": {"servers": 2, "load": 1.0, "sizes": {"law": "exponential", "mean": 1}}},
        "load must be < 1 .* got 1.0",
    ),
    ({"source": {"servers": 2, "sizes": {"law": "exponential", "mean": 1}}}, "missing: load"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_an_argument_that_is_not_allowed(change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(System, "feed", None)  # nothing runs
    with pytest.raises(ValueError, match=message):
        simulate(**{"source": "light-2", "policy": "srpt", "jobs": 1000, **change})


@pytest.mark.parametrize("name", ["jobs", "warmup", "streams"])
def test_a_workload_says_itself_how_many_jobs_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be None with a workload.* got 5"):
        simulate(**{"source": workload(), "servers": 2, name: 5})  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="servers must be given with a workload"):
        simulate(workload(), "srpt")
