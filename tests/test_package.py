"""The package as a stranger meets it: import, public names, layers of the kernel."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import queue_env

ROOT = Path(__file__).parent.parent
HEAVY = ("numba", "torch", "scipy", "matplotlib", "rich", "typer")


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT).stdout


def test_import_loads_nothing_heavy() -> None:
    loaded = python(f"import queue_env, sys; print([name for name in {HEAVY} if name in sys.modules])")
    assert loaded.strip() == "[]"


@pytest.mark.parametrize("name", queue_env.__all__)
def test_public_names_are_there_in_any_order(name: str) -> None:
    # A submodule of the same name, imported on the way, must not take the place of a function.
    others = [other for other in queue_env.__all__ if other != name]
    code = f"import queue_env\nfor other in {others}: getattr(queue_env, other)\nfrom queue_env import {name}\n"
    assert "module" not in python(code + f"print(type({name}).__name__)").split()


def test_public_names_are_documented() -> None:
    for name in queue_env.__all__:
        if name not in ("SCENARIOS", "__version__"):
            assert getattr(queue_env, name).__doc__, name


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        queue_env.simulat  # noqa: B018


def test_kernel_functions_are_all_compiled() -> None:
    # A function without a decorator would be called as Python, or not at all; entry points are compiled below them.
    for source in sorted((ROOT / "queue_env" / "kernel").glob("*.py")):
        layout = source.stem.endswith("layout")
        if layout or source.stem in ("atomic", "compile", "entry_points", "packing", "compact", "__init__"):
            continue
        tree = ast.parse(source.read_text())
        assigned = " ".join(ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                made = f"jit_entry({node.name})" in assigned
                assert node.decorator_list or made, f"{source.name}: {node.name}"


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_workflow_is_ci_run_for_every_python_that_the_package_names() -> None:
    job = read_yaml(".github/workflows/ci.yml")["jobs"]["run"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["bash .ci/run"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = "Programming Language :: Python :: "
    named = [entry.removeprefix(python) for entry in project["classifiers"] if entry.startswith(python)]
    assert job["strategy"]["matrix"]["python"] == named


def test_the_citation_is_of_this_version() -> None:
    assert read_yaml("CITATION.cff")["version"] == queue_env.__version__
