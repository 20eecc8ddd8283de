"""The disk cache of compiled code: an edit of any kernel file takes effect, and without one nothing is compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "queue_env"
RUN = """
from queue_env import Workload, simulate
print(simulate(Workload([0, 1], [2, 4]), "ps", servers=1).mean_response)
"""


def mean_response(folder: Path) -> float:
    """Of the copy of the package in `folder`: two jobs that share one server, T = 3 and 5."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return float(done.stdout)


def cached(folder: Path) -> dict[Path, int]:
    """The files of the cache, with the times of their last change."""
    return {file: file.stat().st_mtime_ns for file in (folder / "cache").rglob("*") if file.is_file()}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_an_edit_of_a_called_function_is_noticed(tmp_path: Path) -> None:
    """`sharing` holds the entry point; what is edited is a function that it calls, in another file."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "queue_env", ignore=ignored)
    assert mean_response(tmp_path) == 4
    compiled = cached(tmp_path)
    assert any(file.suffix == ".nbc" for file in compiled)
    assert mean_response(tmp_path) == 4
    assert cached(tmp_path) == compiled
    edit(
        tmp_path / "queue_env" / "kernel" / "events.py",
        'response = s["now"] - job["arrival"]',
        'response = 100.0 + s["now"] - job["arrival"]',
    )
    assert mean_response(tmp_path) == 104
    assert cached(tmp_path).items() > compiled.items()
