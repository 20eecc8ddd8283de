"""The site is made without a warning, its links lead somewhere, its reference is complete; the notebook runs.

The notebook runs in a process of its own, shortened: its cell with the tag "parameters" gets smaller numbers.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import baselines
import queue_env
from queue_env import checks, network, sb3, theory, wrappers

ROOT = Path(__file__).parent.parent
STORY = ROOT / "docs" / "story.ipynb"
FEW = "plain_jobs, far_jobs, far_policies = 100_000, 1, ['srpt']"
TIMEOUT = 600  # seconds; the first use of each kind of policy compiles it


def run(*arguments: object) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr[-6000:]}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made with every warning as an error."""
    folder = tmp_path_factory.mktemp("site")
    run("-m", "mkdocs", "build", "--strict", "--site-dir", folder)
    return folder


class Page(HTMLParser):
    """The links of a page, and the places in it that links may lead to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = {""}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    # The build checks links between pages written in Markdown; this also those of the notebook and the reference.
    pages = {file: Page(file) for file in site.rglob("*.html") if file.name != "404.html"}
    assert len(pages) > 20
    broken = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            there = target.exists() and (target not in pages or unquote(parts.fragment) in pages[target].places)
            if not there:
                broken.append(f"{file.relative_to(site)}: {link}")
    assert not broken


def documented(site: Path) -> set[str]:
    """The names in the inventory that the reference gives to other sites."""
    head, _, packed = (site / "objects.inv").read_bytes().partition(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2")
    return {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}


@pytest.mark.parametrize(
    "module", [queue_env, baselines, checks, network, sb3, theory, wrappers], ids=lambda module: module.__name__
)
def test_the_reference_has_every_public_name(site: Path, module: Any) -> None:
    names = {f"{module.__name__}.{name}" for name in module.__all__ if name != "__version__"}
    assert names <= documented(site)


def cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells with code."""
    return [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def pictures(notebook: Path) -> list[bool]:
    """Whether each cell has a picture."""
    return [any("image/png" in out.get("data", {}) for out in cell["outputs"]) for cell in cells(notebook)]


def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = json.loads(STORY.read_text(encoding="utf-8"))
    parameters = [cell for cell in notebook["cells"] if "parameters" in cell["metadata"].get("tags", ())]
    (parameters,) = parameters
    parameters["source"] = [FEW]
    shorter, done = tmp_path / "shorter.ipynb", tmp_path / "done.ipynb"
    shorter.write_text(json.dumps(notebook), encoding="utf-8")
    run("-m", "jupyter", "nbconvert", "--to", "notebook", "--execute", shorter, "--output", done)
    assert pictures(done) == pictures(STORY)
    assert sum(pictures(done)) > 4


def test_the_notebook_was_run_from_top_to_bottom() -> None:
    found = cells(STORY)
    assert [cell["execution_count"] for cell in found] == list(range(1, len(found) + 1))
    assert not [out for cell in found for out in cell["outputs"] if out.get("name") == "stderr"]


def words(drawings: Path) -> dict[str, list[str]]:
    """What is written in each drawing of a folder."""
    return {file.name: re.findall(r"<text[^>]*>([^<]*)<", file.read_text("utf-8")) for file in drawings.iterdir()}


def test_the_drawings_are_made_by_their_script(tmp_path: Path) -> None:
    run(ROOT / "docs" / "make_figures.py", tmp_path)
    assert words(tmp_path) == words(ROOT / "docs" / "figures")
