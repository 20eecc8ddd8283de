"""Workloads are validated once; streams give the same jobs however they are cut, stopped and resumed."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import SeedSequence

from queue_env.arrivals import arrival_process
from queue_env.distributions import LAWS, Law, law
from queue_env.workload import MAX_SERVERS, Chunk, Stream, Workload, check_servers

POISSON = {"process": "poisson"}
MMPP = {"process": "mmpp", "rates": [4, 0.5], "generator": [[-0.1, 0.1], [0.05, -0.05]]}
PROCESSES: list[dict[str, Any]] = [
    POISSON,
    {"process": "renewal", "law": {"law": "weibull", "shape": 0.7, "mean": 3}},
    MMPP,
    {"process": "batch", "batch": {"law": "geometric", "mean": 2.5}, "epochs": MMPP},
]
ALL_LAWS: list[dict[str, Any]] = [
    {"law": "pareto", "alpha": 1.5, "mean": 1},
    {"law": "lomax", "alpha": 1.5, "mean": 1},
    {"law": "bounded-pareto", "alpha": 1.5, "low": 1, "high": 100},
    {"law": "weibull", "shape": 0.5, "mean": 1},
    {"law": "lognormal", "sigma": 1, "mean": 1},
    {"law": "exponential", "mean": 1},
    {"law": "hyperexponential", "mean": 1, "scv": 4},
    {"law": "uniform", "low": 0.5, "high": 1.5},
    {"law": "deterministic", "value": 1},
    {"law": "empirical", "values": [1, 2, 5]},
]
SIZES = law({"law": "pareto", "alpha": 1.5, "mean": 1})
PATIENCE = law({"law": "exponential", "mean": 2})


def stream(process: dict[str, Any] = POISSON, sizes: Law = SIZES, patience: Law | None = None, seed: int = 1) -> Stream:
    return Stream(arrival_process(process, 2.0), sizes, patience, SeedSequence(seed))


def gaps(chunks: list[Chunk]) -> Any:
    return np.concatenate([np.diff(chunk.arrival_times, prepend=0.0) for chunk in chunks])


def joined(chunks: list[Chunk], field: str) -> Any:
    return np.concatenate([getattr(chunk, field) for chunk in chunks])


def assert_same_jobs(some: list[Chunk], others: list[Chunk]) -> None:
    np.testing.assert_array_equal(joined(some, "sizes"), joined(others, "sizes"))
    np.testing.assert_allclose(gaps(some), gaps(others), rtol=1e-9, atol=1e-9)
    if some[0].patience is not None:
        np.testing.assert_array_equal(joined(some, "patience"), joined(others, "patience"))


def test_workload_keeps_read_only_copies() -> None:
    times = np.array([0.0, 1.0, 1.0])
    workload = Workload(times, [1, 2, 3], patience=[0, np.inf, 5])
    times[0] = 9
    assert len(workload) == 3
    np.testing.assert_array_equal(workload.arrival_times, [0, 1, 1])
    assert workload.patience is not None
    for column in (workload.arrival_times, workload.sizes, workload.patience):
        assert column.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    with pytest.raises(AttributeError):
        workload.sizes = times  # type: ignore[misc]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([], []), "arrival_times must be of at least one job, got \\[\\]"),
        (([0, 1], [1]), "length of sizes must be 2, that of arrival_times, got 1"),
        (([0, 1], [1, 1], [1]), "length of patience must be 2, that of arrival_times, got 1"),
        (([[0, 1]], [1, 1]), "shape of arrival_times must be one-dimensional, got \\(1, 2\\)"),
        (([0, 1], 3.0), "shape of sizes must be one-dimensional, got \\(\\)"),
        (([0, 1], ["a", "b"]), "sizes must be an array of numbers"),
        (([0, 2, 1.5, 1], [1] * 4), "arrival_times\\[2\\] must be at least the one before it, 2.0, got 1.5"),
        (([-1, 2], [1, 1]), "arrival_times\\[0\\] must be finite and >= 0, got -1.0"),
        (([0, np.inf], [1, 1]), "arrival_times\\[1\\] must be finite and >= 0, got inf"),
        (([0, np.nan], [1, 1]), "arrival_times\\[1\\] must be finite and >= 0, got nan"),
        (([0, 1], [1, 0]), "sizes\\[1\\] must be finite and > 0, got 0.0"),
        (([0, 1], [np.inf, 1]), "sizes\\[0\\] must be finite and > 0, got inf"),
        (([0, 1], [np.nan, 1]), "sizes\\[0\\] must be finite and > 0, got nan"),
        (([0, 1], [1, 1], [1, -2]), "patience\\[1\\] must be >= 0 \\(inf is allowed\\), got -2.0"),
        (([0, 1], [1, 1], [np.nan, 1]), "patience\\[0\\] must be >= 0 \\(inf is allowed\\), got nan"),
    ],
)
def test_bad_workload_is_refused(columns: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workload(*columns)


def test_load_is_work_over_capacity() -> None:
    workload = Workload([5, 6, 9], [1, 2, 3])
    assert workload.load(2) == pytest.approx(6 / (2 * 4))


def test_load_needs_time_to_pass() -> None:
    with pytest.raises(ValueError, match=r"arrival_times must be not all the same.*got 3\.0"):
        Workload([3, 3], [1, 1]).load(2)


@given(
    st.lists(st.floats(0, 1e6), min_size=2, max_size=30).filter(lambda times: max(times) - min(times) > 1e-3),
    st.floats(0.01, 100),
    st.integers(1, MAX_SERVERS),
)
@settings(deadline=None)
def test_rescaled_stretches_time_only(times: list[float], load: float, servers: int) -> None:
    workload = Workload(np.sort(times), np.arange(1, len(times) + 1), np.ones(len(times)))
    other = workload.rescaled(load, servers)
    np.testing.assert_array_equal(other.sizes, workload.sizes)
    np.testing.assert_array_equal(other.patience, workload.patience)
    factor = workload.load(servers) / load
    start = workload.arrival_times[0]
    assert other.arrival_times[0] == start
    expected = (workload.arrival_times - start) * factor
    np.testing.assert_allclose(other.arrival_times - start, expected, rtol=1e-9, atol=1e-9 * start)


def test_rescaled_has_the_load() -> None:
    assert Workload([0, 1, 7], [1, 2, 3]).rescaled(0.9, 4).load(4) == pytest.approx(0.9, rel=1e-14)


@pytest.mark.parametrize("load", [0, -1, np.inf, np.nan, "0.5"])
def test_bad_load_is_refused(load: Any) -> None:
    with pytest.raises(ValueError, match="load must be a finite number > 0"):
        Workload([0, 1], [1, 1]).rescaled(load, 2)


@pytest.mark.parametrize("servers", [0, -1, MAX_SERVERS + 1, 2.0, True, "2", None])
def test_bad_servers_are_refused(servers: Any) -> None:
    with pytest.raises(ValueError, match="servers must be an integer from 1 to 10000, got"):
        check_servers(servers)


def test_servers_may_be_any_integer_type() -> None:
    assert type(check_servers(np.int64(3))) is int  # type: ignore[arg-type]


def test_chunk_is_a_workload() -> None:
    workload = Workload(*stream(patience=PATIENCE).chunk(50))
    assert len(workload) == 50
    assert Workload(*stream().chunk(50)).patience is None


def test_chunk_times_count_from_the_chunk_before() -> None:
    jobs = stream()
    whole = stream().chunk(300).arrival_times
    first, second = jobs.chunk(100).arrival_times, jobs.chunk(200).arrival_times
    np.testing.assert_allclose(np.concatenate([first, first[-1] + second]), whole, rtol=1e-12)


@pytest.mark.parametrize("count", [0, -3])
def test_empty_chunk_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="count must be >= 1"):
        stream().chunk(count)


def test_every_law_is_tried() -> None:
    assert {spec["law"] for spec in ALL_LAWS} == set(LAWS)


@pytest.mark.parametrize("process", PROCESSES, ids=lambda spec: spec["process"])
@given(st.lists(st.integers(1, 700), min_size=1, max_size=8))
@settings(deadline=None, max_examples=20)
def test_jobs_do_not_depend_on_the_chunks_whatever_the_process(process: dict[str, Any], cuts: list[int]) -> None:
    cut, whole = stream(process, patience=PATIENCE), stream(process, patience=PATIENCE)
    assert_same_jobs([cut.chunk(count) for count in cuts], [whole.chunk(sum(cuts))])


@pytest.mark.parametrize("spec", ALL_LAWS, ids=lambda spec: spec["law"])
def test_jobs_do_not_depend_on_the_chunks_whatever_the_law(spec: dict[str, Any]) -> None:
    cuts = [1, 255, 1, 600, 7, 30_000]
    cut, whole = stream(sizes=law(spec)), stream(sizes=law(spec))
    assert_same_jobs([cut.chunk(count) for count in cuts], [whole.chunk(sum(cuts))])


@pytest.mark.parametrize("process", PROCESSES, ids=lambda spec: spec["process"])
@given(st.integers(0, 1_500), st.integers(1, 1_500))
@settings(deadline=None, max_examples=20)
def test_state_continues_bit_for_bit(process: dict[str, Any], before: int, after: int) -> None:
    source = stream(process, patience=PATIENCE)
    if before:
        source.chunk(before)
    state = json.loads(json.dumps(source.state()))
    other = stream(process, patience=PATIENCE, seed=99)
    other.restore(state)
    for count in (after, 300, after):
        for expected, found in zip(source.chunk(count), other.chunk(count), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_state_is_not_touched_by_going_on() -> None:
    source = stream(MMPP)
    state = source.state()
    kept = json.dumps(state)
    source.chunk(5_000)
    assert json.dumps(state) == kept


def test_state_with_patience_needs_patience() -> None:
    with pytest.raises(ValueError, match="state must be of arrivals, sizes, got"):
        stream().restore(stream(patience=PATIENCE).state())


@pytest.mark.parametrize("part", [{"block": 0, "used": 0}, {"used": 257}, {"used": -1}, {"block": 10**9}])
def test_state_of_no_block_is_refused(part: dict[str, int]) -> None:
    state = stream().state()
    state["sizes"] |= part
    with pytest.raises(ValueError, match=r"state must be of a block of 1 to 16384 and a position in it, got \("):
        stream().restore(state)


def test_sizes_and_patience_do_not_change_with_the_arrivals() -> None:
    chunks = [stream(process, patience=PATIENCE).chunk(2_000) for process in PROCESSES]
    for chunk in chunks[1:]:
        np.testing.assert_array_equal(chunk.sizes, chunks[0].sizes)
        np.testing.assert_array_equal(chunk.patience, chunks[0].patience)
    np.testing.assert_array_equal(stream().chunk(2_000).sizes, chunks[0].sizes)


def test_stream_is_a_function_of_its_arguments() -> None:
    seed, process = SeedSequence(5), arrival_process(MMPP, 1.0)
    first = Stream(process, SIZES, None, seed).chunk(1_000)
    seed.spawn(3)
    second = Stream(process, SIZES, None, seed).chunk(1_000)
    assert_same_jobs([first], [second])
    assert process.state() == {"phase": None}
    assert seed.n_children_spawned == 3


def test_streams_and_their_parts_are_independent() -> None:
    """Correlations of 10⁵ exponential variates: |r| < 4.9/√10⁵, a false alarm of 1e-6 each."""
    exponential = law({"law": "exponential", "mean": 1})
    first, second = SeedSequence(7).spawn(2)
    process = arrival_process(POISSON, 1.0)
    chunks = [Stream(process, exponential, exponential, seed).chunk(100_000) for seed in (first, second)]
    columns: list[Any] = [
        column
        for chunk in chunks
        for column in (np.diff(chunk.arrival_times, prepend=0.0), chunk.sizes, chunk.patience)
    ]
    columns.append(np.random.default_rng(first).standard_exponential(100_000))
    columns.append(np.random.default_rng(first.spawn(1)[0]).standard_exponential(100_000))
    correlations = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlations).max() < 4.9 / np.sqrt(100_000)
