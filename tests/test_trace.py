"""Traces: which columns make a workload, to the last digit, and which row a bad one is told to have."""

import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queue_env.trace import AZURE_SIZE, load_trace

AZURE_TRACE = Path(__file__).parents[2] / "shared" / "traces" / "azure-llm-conversation-2023.csv"
AZURE_HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    return write(tmp_path / "jobs.csv", "arrival,size,patience\n0,1,10\n1.5,2,inf\n1.5,0.25,0\n")


def test_csv_by_default_columns(csv_file: Path) -> None:
    workload = load_trace(csv_file)
    np.testing.assert_array_equal(workload.arrival_times, [0, 1.5, 1.5])
    np.testing.assert_array_equal(workload.sizes, [1, 2, 0.25])
    assert workload.patience is None


def test_arrival_time_is_the_first_choice(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.csv", "arrival,size,arrival_time\n7,1,2\n8,1,3\n")
    np.testing.assert_array_equal(load_trace(path).arrival_times, [2, 3])


def test_patience_is_read_if_it_is_asked_for(csv_file: Path) -> None:
    np.testing.assert_array_equal(load_trace(str(csv_file), patience="patience").patience, [10, np.inf, 0])


def test_columns_by_name_and_formula(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.csv", "t (s),CPU time,disk,x.y\n1,2,3,4\n2,20,30,40\n")
    workload = load_trace(path, arrival="t (s)", size="2*disk - 0.5*x.y+ 1e-1", patience="CPU time")
    np.testing.assert_array_equal(workload.arrival_times, [1, 2])
    np.testing.assert_allclose(workload.sizes, [6 - 2 + 0.1, 60 - 20 + 0.1], rtol=1e-15)
    np.testing.assert_array_equal(workload.patience, [2, 20])


@pytest.mark.parametrize(
    ("formula", "sizes"),
    [
        ("size", [1, 2, 0.25]),
        ("3", [3, 3, 3]),
        (".5 * size", [0.5, 1, 0.125]),
        ("-1*arrival + 2", [2, 0.5, 0.5]),
        ("size+size + 1", [3, 5, 1.5]),
        ("2.*size - size", [1, 2, 0.25]),
    ],
)
def test_formula(csv_file: Path, formula: str, sizes: list[float]) -> None:
    np.testing.assert_array_equal(load_trace(csv_file, size=formula).sizes, sizes)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(0, 1e6), min_size=1),
    st.floats(1e-6, 1e6),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_any_formula(tmp_path: Path, factors: dict[str, float], constant: float) -> None:
    path = write(tmp_path / "jobs.csv", "arrival,a,b,c\n0,1,10,100\n1,2,3,5\n")
    columns = {"a": np.array([1, 2]), "b": np.array([10, 3]), "c": np.array([100, 5])}
    formula = " + ".join([f"{factor!r}*{name}" for name, factor in factors.items()] + [repr(constant)])
    expected = constant + sum(factor * columns[name] for name, factor in factors.items())
    np.testing.assert_allclose(load_trace(path, size=formula).sizes, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("formula", "rest"),
    [
        ("2 size", "'size'"),
        ("size*2", "'\\*2'"),
        ("size + ", "'\\+ '"),
        ("(size)", "'\\(size\\)'"),
        ("__import__('os')", "\"\\('os'\\)\""),
        ("", "''"),
        ("1e", "'e'"),
    ],
)
def test_formula_that_is_none(csv_file: Path, formula: str, rest: str) -> None:
    with pytest.raises(ValueError, match=rf"size must be a sum of .* \(it is not from {rest} on\), got"):
        load_trace(csv_file, size=formula)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arrival": "when"}, r"arrival must be the column .*arrival, size, patience\), got 'when'"),
        ({"size": "2*work"}, r"sizes must be computed from columns that are there .*, got 'work'"),
        ({"patience": "will"}, r"patience must be computed from columns .*size, patience\), got 'will'"),
        ({"load": 0.8}, r"load and servers must be both given or both None, got \(0.8, None\)"),
        ({"servers": 2}, "load and servers must be both given"),
        ({"load": -1, "servers": 2}, "load must be a finite number > 0, got -1"),
        ({"load": 0.8, "servers": 0}, "servers must be an integer from 1"),
        ({"limit": 0}, "limit must be >= 1 or None, got 0"),
    ],
)
def test_bad_arguments(csv_file: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_trace(csv_file, **arguments)


def test_columns_without_default(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.csv", "when,size\n0,1\n")
    with pytest.raises(ValueError, match=r"arrival must be the column .* are when, size\), got None"):
        load_trace(path)
    path = write(tmp_path / "jobs.csv", "arrival,work\n0,1\n")
    with pytest.raises(ValueError, match=r"size must be given .* are arrival, work\), got None"):
        load_trace(path)


def test_rescaled_to_a_load(csv_file: Path) -> None:
    assert load_trace(csv_file, load=0.7, servers=3).load(3) == pytest.approx(0.7, rel=1e-14)


def test_limit(csv_file: Path) -> None:
    assert len(load_trace(csv_file, limit=2)) == 2
    assert len(load_trace(csv_file, limit=99)) == 3


def test_rows_beyond_the_limit_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.csv", "arrival,size\n0,1\n1,1\nx,y,z\n")
    assert len(load_trace(path, limit=2)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "jobs.csv: is empty"),
        ("\n\n", "jobs.csv: is empty"),
        ("arrival,size\n", "jobs.csv: has no rows of data"),
        (
            "arrival,size,size\n0,1,1\n",
            "sizes must be computed from columns that are there once .* got 'size'",
        ),
        ("arrival,size\n0,1\n\n1\n", r"jobs.csv: row 2 \(line 4\) has 1 cells: must have 2"),
        ("arrival,size\n0,1\n1,x\n", r"row 2 \(line 3\), column 'size': must be a number, got 'x'"),
        ("arrival,size\n0,1\n\n1,\n", r"row 2 \(line 4\), column 'size': must be a number, got ''"),
        ("arrival,size\n0,nan\n", r"row 1 \(line 2\), column 'size': must be a number, got 'nan'"),
        ("arrival,size\n0,1\n2,0\n", r"row 2 \(line 3\), column 'size': must be finite and > 0, got '0.0'"),
        ("arrival,size\n0,inf\n", r"row 1 \(line 2\), column 'size': must be finite and > 0, got 'inf'"),
        ("arrival,size\n-2,1\n", r"column 'arrival': must be finite and >= 0, got '-2.0'"),
        (
            "arrival,size\n0,1\n3,1\n2,1\n1,1\n",
            r"row 3 \(line 4\), column 'arrival': must be at least the 3 before it, or .*, got '2'",
        ),
        (
            "arrival,size\nsoon,1\n",
            r"row 1 \(line 2\), column 'arrival': must be a number or a timestamp, got 'soon'",
        ),
        (
            "arrival,size\n2023-01-01,1\n2023-01-32,1\n",
            r"row 2 \(line 3\), column 'arrival': must be a number or a timestamp, got '2023-01-32'",
        ),
        ("arrival,size\n2023-01-01,1\nnow,1\n", "must be a number or a timestamp, got 'now'"),
        ("arrival,size\n1,1\n2023-01-01,1\n", "must be a number or a timestamp, got '2023-01-01'"),
        ("arrival,size\n1,2023-01-01\n", "column 'size': must be a number, got '2023-01-01'"),
        ('arrival,size\n0,"1\n', "jobs.csv: cannot be read"),
    ],
)
def test_bad_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_trace(write(tmp_path / "jobs.csv", text))


def test_bad_formula_value_names_the_formula(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.csv", "arrival,size\n0,2\n1,3\n2,0.25\n")
    with pytest.raises(ValueError, match=r"row 3 \(line 4\), column 'size - 1': must be .* > 0, got '-0.75'"):
        load_trace(path, size="size - 1")


def test_bad_patience(csv_file: Path) -> None:
    write(csv_file, "arrival,size,patience\n0,1,-1\n")
    with pytest.raises(ValueError, match=r"column 'patience': must be >= 0 \(inf is allowed\), got '-1.0'"):
        load_trace(csv_file, patience="patience")


def test_sort_keeps_ties_in_order(tmp_path: Path) -> None:
    times = [row * 7 % 10 for row in range(1_000)]
    rows = "".join(f"{moment},{row + 1}\n" for row, moment in enumerate(times))
    workload = load_trace(write(tmp_path / "jobs.csv", "arrival,size\n" + rows), sort=True)
    expected = sorted((moment, row + 1) for row, moment in enumerate(times))
    assert list(zip(workload.arrival_times, workload.sizes, strict=True)) == expected


def test_skip_invalid(tmp_path: Path) -> None:
    rows = ["0,1", "x,1", "1,", "2,0", "-1,1", "3,nan", "4,5"]
    path = write(tmp_path / "jobs.csv", "\n".join(["arrival,size", *rows]))
    workload = load_trace(path, skip_invalid=True)
    np.testing.assert_array_equal(workload.arrival_times, [0, 4])
    np.testing.assert_array_equal(workload.sizes, [1, 5])


def test_skip_invalid_still_needs_order_and_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.csv", "arrival,size\n5,0\n3,1\n2,1\n")
    with pytest.raises(ValueError, match=r"row 3 \(line 4\), column 'arrival': must be at least the 3 before it"):
        load_trace(path, skip_invalid=True)
    path = write(tmp_path / "jobs.csv", "arrival,size\n5,0\n3,x\n")
    with pytest.raises(ValueError, match=r"jobs\.csv: none of the 2 rows is valid"):
        load_trace(path, skip_invalid=True)


def test_azure_columns_by_default(tmp_path: Path) -> None:
    rows = "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    path = write(tmp_path / "llm.csv", AZURE_HEADER + rows)
    workload = load_trace(path)
    assert workload.arrival_times.tolist() == [0.0, 4.314579]
    np.testing.assert_allclose(workload.sizes, [0.1 + 374 * 2e-4 + 44 * 0.02, 0.1 + 396 * 2e-4 + 109 * 0.02])


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=20))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_timestamps_keep_every_tick(tmp_path: Path, ticks: list[int]) -> None:
    """Ticks of 100 ns within 27 hours: what is read is the double nearest to the exact difference."""
    ticks = sorted(ticks)
    start = datetime(2024, 2, 28, 23, 59, 59, tzinfo=UTC)
    moments = [f"{start + timedelta(seconds=tick // 10**7):%Y-%m-%d %H:%M:%S}.{tick % 10**7:07d}" for tick in ticks]
    rows = "".join(f"{moment},1,1\n" for moment in moments)
    times = load_trace(write(tmp_path / "llm.csv", AZURE_HEADER + rows)).arrival_times
    assert times.tolist() == [float(Decimal(tick - ticks[0]) / 10**7) for tick in ticks]


def test_unsorted_timestamps_can_be_sorted(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.csv", "arrival,size\n2023-01-02,1\n2023-01-01,2\n")
    with pytest.raises(ValueError, match=r"row 2 .* at least the 2023-01-02 before it, .* got '2023-01-01'"):
        load_trace(path)
    workload = load_trace(path, sort=True)
    assert workload.arrival_times.tolist() == [0.0, 86_400.0]
    assert workload.sizes.tolist() == [2.0, 1.0]


def test_large_trace_is_read_in_reasonable_time(tmp_path: Path) -> None:
    rows = "".join(f"2023-11-16 18:{i // 3600:02d}:{i // 60 % 60:02d}.{i:07d},374,44\n" for i in range(200_000))
    path = write(tmp_path / "llm.csv", AZURE_HEADER + rows)
    start = time.perf_counter()
    assert len(load_trace(path, sort=True)) == 200_000
    assert time.perf_counter() - start < 6  # about 0.4 s on an idle core


@pytest.mark.skipif(not AZURE_TRACE.exists(), reason="the Azure trace is not beside the repository")
def test_azure_trace() -> None:
    start = time.perf_counter()
    workload = load_trace(AZURE_TRACE, load=0.8, servers=4)
    assert time.perf_counter() - start < 3  # about 0.05 s on an idle core
    assert len(workload) == 19_366
    assert workload.load(4) == pytest.approx(0.8, rel=1e-12)
    natural = load_trace(AZURE_TRACE)
    np.testing.assert_array_equal(natural.sizes, load_trace(AZURE_TRACE, size=AZURE_SIZE).sizes)
    # Last less first timestamp: 19:14:08.4025270 - 18:15:46.6805900.
    assert natural.arrival_times[-1] == 3_501.721937
    np.testing.assert_allclose(natural.sizes.mean(), 0.1 + 2e-4 * 1154.6974078 + 0.02 * 211.12594237, rtol=1e-9)
