"""The file formats of traces: text as found in the wild, zipped files, .swf and .parquet."""

import gzip
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from queue_env.trace import load_trace
from queue_env.trace_files import SWF_COLUMNS


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def swf_job(submit: object, run: object, processors: object = 4) -> str:
    return f"1 {submit} 0 {run} {processors} -1 -1 {processors} -1 -1 1 1 1 -1 1 1 -1 -1"


def test_text_as_spreadsheets_write_it(tmp_path: Path) -> None:
    """Byte order mark, CRLF, quotes, spaces, blank lines, no newline at the end."""
    path = write(tmp_path / "JOBS.CSV", '\ufeff"arrival", size\r\n\r\n"0", 1\r\n 2 ,"3"\r\n\r\n4,5')
    np.testing.assert_array_equal(load_trace(path).arrival_times, [0, 2, 4])
    np.testing.assert_array_equal(load_trace(path).sizes, [1, 3, 5])


@pytest.mark.parametrize("suffix", [".csv.gz", ".swf.gz"])
def test_zipped_files(tmp_path: Path, suffix: str) -> None:
    text = "arrival,size\n0,1\n" if "csv" in suffix else swf_job(0, 1)
    path = tmp_path / f"jobs{suffix}"
    path.write_bytes(gzip.compress(text.encode()))
    np.testing.assert_array_equal(load_trace(path).sizes, [1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"plain text", "cannot be read: Not a gzipped file"),
        (gzip.compress(b"arrival,size\n0,1\n" * 50)[:-20], "cannot be read: Compressed file ended"),
    ],
)
def test_broken_zipped_file(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"jobs.csv.gz: {message}"):
        load_trace(path)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"arrival,size\n0,\xff\n")
    with pytest.raises(ValueError, match=r"jobs.csv: cannot be read: .*utf-8"):
        load_trace(path)


@pytest.mark.parametrize("name", ["jobs.txt", "jobs", "jobs.gz"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"ends in one of \.csv, \.csv\.gz, \.swf, \.swf\.gz, \.parquet"):
        load_trace(tmp_path / name)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"jobs\.csv"):
        load_trace(tmp_path / "jobs.csv")


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        ("2023-11-16 18:15:46.6805900", "2023-11-16 18:15:46.6805901", 1e-7),
        ("2023-11-16 18:15:46", "2023-11-16T18:15:46.000000001", 1e-9),
        ("2023-12-31", "2024-01-01", 86_400.0),
        ("2023-12-31 23:59", "2024-01-01 00:00", 60.0),
        ("2024-05-10 00:00:00.009930+00:00", "2024-05-10 00:00:00.509930+00:00", 0.5),
        ("2024-05-10T00:00:00Z", "2024-05-10T02:00:01+02:00", 1.0),
    ],
)
def test_forms_of_timestamps(tmp_path: Path, first: str, second: str, seconds: float) -> None:
    path = write(tmp_path / "jobs.csv", f"arrival,size\n{first},1\n{second},1\n")
    assert load_trace(path).arrival_times.tolist() == [0.0, seconds]


def test_swf(tmp_path: Path) -> None:
    text = "; Version: 2.2\n;   UnixStartTime: 0\n\n" + "\n".join(
        ["  " + swf_job(5, 100), swf_job(9, 3.5), "; a comment between", swf_job(9, 7, processors=2)]
    )
    path = write(tmp_path / "cluster.swf", text + "\n")
    workload = load_trace(path)
    np.testing.assert_array_equal(workload.arrival_times, [5, 9, 9])
    np.testing.assert_array_equal(workload.sizes, [100, 3.5, 7])
    other = load_trace(path, size="allocated_processors", patience="2*requested_processors")
    np.testing.assert_array_equal(other.sizes, [4, 4, 2])
    np.testing.assert_array_equal(other.patience, [8, 8, 4])


def test_swf_has_eighteen_columns() -> None:
    assert len(SWF_COLUMNS) == 18
    assert SWF_COLUMNS.index("submit_time") == 1
    assert SWF_COLUMNS.index("run_time") == 3
    assert SWF_COLUMNS.index("requested_processors") == 7


@pytest.mark.parametrize("size", [None, "run_time + 60"])
def test_swf_unknown_is_an_error_unless_skipped(tmp_path: Path, size: str | None) -> None:
    text = "\n".join(["; header", swf_job(1, 10), swf_job(2, -1), swf_job(3, 30)])
    path = write(tmp_path / "cluster.swf", text)
    message = r"cluster\.swf: row 2 \(line 3\), column 'run_time': must be a known number, got '-1'"
    with pytest.raises(ValueError, match=message):
        load_trace(path, size=size)
    np.testing.assert_array_equal(load_trace(path, size=size, skip_invalid=True).arrival_times, [1, 3])


def test_swf_row_of_wrong_length(tmp_path: Path) -> None:
    path = write(tmp_path / "cluster.swf", swf_job(1, 10) + "\n1 2 3\n")
    with pytest.raises(ValueError, match=r"row 2 \(line 2\) has 3 cells: must have 18"):
        load_trace(path)


def write_parquet(path: Path, **columns: Any) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_numbers(tmp_path: Path) -> None:
    sizes = [Decimal("1.5"), Decimal("2.5"), Decimal("3.5")]
    path = write_parquet(tmp_path / "jobs.parquet", arrival=[0, 1, 2], size=sizes, patience=[1.0, 2.0, np.inf])
    workload = load_trace(path, patience="patience")
    np.testing.assert_array_equal(workload.arrival_times, [0, 1, 2])
    np.testing.assert_array_equal(workload.sizes, [1.5, 2.5, 3.5])
    np.testing.assert_array_equal(workload.patience, [1, 2, np.inf])
    assert len(load_trace(path, limit=2)) == 2


@pytest.mark.parametrize("zone", [None, UTC])
def test_parquet_timestamps(tmp_path: Path, zone: Any) -> None:
    start = datetime(2023, 11, 16, 18, 15, 46, 680590, tzinfo=zone)
    moments = [start, start + timedelta(microseconds=1)]
    path = write_parquet(tmp_path / "llm.parquet", TIMESTAMP=moments, ContextTokens=[1, 2], GeneratedTokens=[3, 4])
    workload = load_trace(path)
    assert workload.arrival_times.tolist() == [0.0, 1e-6]
    np.testing.assert_allclose(workload.sizes, [0.1 + 2e-4 + 0.06, 0.1 + 4e-4 + 0.08])


def test_parquet_timestamps_as_text(tmp_path: Path) -> None:
    texts = ["2023-11-16 18:15:46.6805900", "2023-11-16 18:15:46.6805901"]
    path = write_parquet(tmp_path / "jobs.parquet", arrival=texts, size=["1", "2"])
    assert load_trace(path).arrival_times.tolist() == [0.0, 1e-7]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"arrival": [0, None], "size": [1, 1]}, "row 2, column 'arrival': must be a number or a timestamp"),
        ({"arrival": [0, 1], "size": [1, None]}, "row 2, column 'size': must be a number, got 'nan'"),
        ({"arrival": [0, 1], "size": ["1", None]}, "row 2, column 'size': must be a number, got 'None'"),
        ({"arrival": [0, 1], "size": [True, True]}, "row 1, column 'size': must be a number, got 'True'"),
        ({"arrival": [datetime(2023, 1, 1), None], "size": [1, 1]}, "row 2, column 'arrival': .* got 'NaT'"),
        ({"arrival": [0], "size": [datetime(2023, 1, 1)]}, "row 1, column 'size': must be a number"),
        ({"arrival": [1, 0], "size": [1, 1]}, "row 2, column 'arrival': must be at least the 1.0 before it"),
        ({"arrival": np.empty(0), "size": np.empty(0)}, "has no rows of data"),
    ],
)
def test_bad_parquet(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = write_parquet(tmp_path / "jobs.parquet", **columns)
    with pytest.raises(ValueError, match=message):
        load_trace(path)


def test_file_that_is_no_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"jobs\.parquet: cannot be read"):
        load_trace(write(tmp_path / "jobs.parquet", "arrival,size\n0,1\n"))


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*filter(lambda name: name.startswith("pyarrow"), sys.modules), "pyarrow", "pyarrow.parquet"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"install queue-env\[parquet\]"):
        load_trace(tmp_path / "jobs.parquet")
