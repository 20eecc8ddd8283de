"""docs/environment.md is the docstring of `QueueEnv`, and its tables are those of the code."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import queue_env
from queue_env import action, observation, reward
from queue_env.config import EPISODES, RENDER_MODES
from queue_env.kernel.env_layout import EMPTY_AGAIN, REASONS
from queue_env.registration import IDS

DOCS = Path(__file__).parent.parent / "docs"
HEADINGS = [
    "Description",
    "Action Space",
    "Observation Space",
    "Rewards",
    "Starting State",
    "Episode End",
    "Information",
    "Arguments",
    "Vector Environment",
    "Version History",
]
PARTS = re.split(r"^## (.+)\n", inspect.getdoc(queue_env.QueueEnv) or "", flags=re.MULTILINE)
SECTIONS = dict(zip(PARTS[1::2], PARTS[2::2], strict=True))


def table(heading: str, which: int = 0) -> list[list[str]]:
    """The cells of a table of a section, the first by default, its head first."""
    text = re.findall(r"(?:^\|.*\n)+", SECTIONS[heading], flags=re.MULTILINE)[which]
    rows = re.findall(r"^\| *(.*?) *\|$", text, flags=re.MULTILINE)
    return [[cell.strip() for cell in re.split(r" ?\| ", row)] for row in rows if not row.startswith("---")]


def by_name(heading: str, column: int = 0, which: int = 0) -> dict[str, dict[str, str]]:
    """The rows of a table by the first code in a column; rows that have none there belong to the row above."""
    head, *rows = table(heading, which)
    named = [(re.match("`([^`]+)`", row[column]), row) for row in rows]
    return {name[1]: dict(zip(head, row, strict=True)) for name, row in named if name}


def names_in(text: str) -> list[str]:
    return re.findall("`([^`]+)`", text)


def last_info(env: queue_env.QueueEnv) -> list[dict[str, Any]]:
    """The infos of an episode of random actions."""
    infos, over = [env.reset(seed=0)[1]], False
    env.action_space.seed(0)
    while not over:
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        over = terminated or truncated
        infos.append(info)
    return infos


def test_the_page_is_made_from_the_docstring() -> None:
    made = runpy.run_path(str(DOCS / "make_environment_page.py"))["page"]()
    assert (DOCS / "environment.md").read_text(encoding="utf-8") == made, "run python docs/make_environment_page.py"


def test_headings_are_gymnasiums() -> None:
    assert list(SECTIONS) == HEADINGS


@pytest.mark.parametrize("heading", ["Action Space", "Observation Space", "Rewards", "Information", "Arguments"])
def test_tables_have_units(heading: str) -> None:
    head, *rows = table(heading)
    assert any(name.startswith("Unit") for name in head)
    assert all(len(row) == len(head) for row in rows)


def test_ids() -> None:
    named = [name for name in names_in(SECTIONS["Description"]) if name.startswith("queue_env/")]
    assert named == list(IDS)
    assert IDS[named[0]] in names_in(SECTIONS["Description"])


def test_actions() -> None:
    rows = by_name("Action Space", 1)
    assert list(rows) == list(action.KINDS)
    for kind, row in rows.items():
        env = queue_env.QueueEnv(action=kind)
        space = env.action_space
        if kind == "rule":
            assert (row["Num"], row["Min"], row["Max"]) == ("0", "0", "number of rules - 1")
            assert (space.start, space.n) == (0, len(env.config.rules))
            continue
        assert space.shape == {"0": (1,), "0, 1": (2,)}.get(row["Num"], (env.config.slots,))
        assert space.dtype == np.float32
        assert np.all(space.low == float(row["Min"]))
        assert np.all(space.high == float(row["Max"]))


@pytest.mark.parametrize(("patience", "known"), list(product([False, True], repeat=2)))
@pytest.mark.parametrize("view", ["flat", "dict", "compact"])
def test_observations(view: str, patience: bool, known: bool) -> None:
    if view == "compact" and not known:
        return
    layout = observation.ObservationLayout(view, 2, 16, 1.0, patience=patience, known=known)
    rows = by_name("Observation Space", 1)
    features = (*observation.SYSTEM_FEATURES, *layout.job_features)
    assert {feature.name for feature in features} <= set(rows)
    assert {feature.name: rows[feature.name]["Unit"] for feature in features} == {f.name: f.unit for f in features}
    if view == "dict":
        for name, box in layout.space().items():
            assert np.all(box.low == float(rows[name]["Min"]))
            assert np.all(box.high == float(rows[name]["Max"]))
    else:
        assert {round(float(high), 2) for high in layout.space().high} == {41.45, 1e9, 1.0}
        assert "at most 41.45" in SECTIONS["Observation Space"]


def test_summary() -> None:
    rows = by_name("Observation Space", 1, which=1)
    layout = observation.ObservationLayout("summary", 2, 0, 1.0)
    hidden = observation.ObservationLayout("summary", 2, 0, 1.0, known=False)
    assert [(name, row["Num"], row["Unit"]) for name, row in rows.items()] == [
        (feature.name, str(i), feature.unit) for i, feature in enumerate(layout.system_features)
    ]
    assert hidden.system_features == layout.system_features[:-1]
    assert f"shape ({layout.entries},), without rows" in SECTIONS["Observation Space"]
    for row, high in zip(rows.values(), layout.space().high, strict=True):
        assert high == pytest.approx(1.0 if row["Max"] == "1" else np.log1p(float(row["Max"])))


def test_places_of_the_features() -> None:
    rows = by_name("Observation Space", 1)
    layout = observation.ObservationLayout("flat", 2, 16, 1.0, patience=True)
    system = {feature.name: str(i) for i, feature in enumerate(observation.SYSTEM_FEATURES)}
    jobs = {feature.name: f"r+{i}" if i else "r" for i, feature in enumerate(layout.job_features)}
    assert {name: row["Num"] for name, row in rows.items()} == system | jobs
    text = " ".join(SECTIONS["Observation Space"].split())
    few = observation.ObservationLayout("compact", 2, 16, 1.0).job_features
    assert f"`compact` has {', '.join(f'`{feature.name}`' for feature in few)} in this order, F = {len(few)}." in text
    hidden = observation.ObservationLayout("flat", 2, 16, 1.0, patience=True, known=False).job_features
    left_out = [f"`{feature.name}`" for feature in layout.job_features if feature not in hidden]
    assert f"{', '.join(left_out[:-1])} and {left_out[-1]} are left out" in text


def test_terms_of_rewards() -> None:
    assert list(by_name("Rewards")) == [kind.written for kind in reward._KINDS.values()]


def test_options_of_reset() -> None:
    env = queue_env.QueueEnv()
    with pytest.raises(ValueError, match="among workload, snapshot, jobs, job") as refused:
        env.reset(options={"none of them": 0})
    allowed = re.search(r"among ([\w, ]+), got", str(refused.value))
    assert allowed is not None
    assert set(by_name("Starting State")) == set(allowed[1].split(", "))


def test_ends_of_episodes() -> None:
    rows = by_name("Episode End", 1)
    assert set(rows) == set(REASONS[1:])
    assert [reason for reason, row in rows.items() if row["End"] == "Termination"] == [REASONS[EMPTY_AGAIN]]
    assert {row["End"] for row in rows.values()} == {"Termination", "Truncation"}


def test_infos() -> None:
    environments = [
        queue_env.QueueEnv(jobs=5, allocation_in_info=True),
        queue_env.QueueEnv("impatient-100", jobs=5),
        queue_env.QueueEnv(episode="big-job", big_sizes=(1, 5), action="anchor"),
    ]
    infos = [info for env in environments for info in last_info(env)]
    assert set(by_name("Information")) == {key for info in infos for key in info}
    # What is in the summary has rows of its own, without a key, after that of the summary.
    rows = table("Information")
    start = [row[0] for row in rows].index("`summary`")
    described = [name for row in rows[start:] for name in names_in(row[1])]
    assert sorted(described) == sorted(infos[-1]["summary"])
    assert infos[0]["dt"] == 0.0


def test_arguments() -> None:
    rows = by_name("Arguments")
    parameters = dict(list(inspect.signature(queue_env.QueueEnv.__init__).parameters.items())[1:])
    assert list(rows) == list(parameters)
    for name, parameter in parameters.items():
        assert ast.literal_eval(rows[name]["Default"].strip("`")) == parameter.default, name
    words = {"action": action.KINDS, "observation": observation.KINDS, "episode": EPISODES, "render_mode": RENDER_MODES}
    for name, allowed in words.items():
        assert names_in(rows[name]["Unit, or what is allowed"]) == list(allowed)


@pytest.mark.parametrize("scenario", ["high-load-2", "high-load-10", "impatient-100"])
def test_defaults_that_depend_on_the_scenario(scenario: str) -> None:
    env = queue_env.QueueEnv(scenario)
    for name, value in {"slots": env.config.slots, "capacity": env.config.capacity}.items():
        formula = re.search(r"None: (max\(.*\))", by_name("Arguments")[name]["Meaning"])
        assert formula is not None
        numbers = {"n": env.config.servers, "K": env.config.slots}
        assert eval(re.sub(r"(\d)n", r"\1*n", formula[1]), {"max": max}, numbers) == value


def test_arguments_of_the_vector_environment() -> None:
    own = list(inspect.signature(queue_env.QueueVectorEnv.__init__).parameters)[1:-1]
    assert all(name in SECTIONS["Vector Environment"] for name in own)
