"""Files of networks: what is written is read, and what is wrong is refused with what is wrong in it."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from queue_env import simulate
from queue_env.network import Network, NetworkPolicy, network_policy, read_network, write_network
from queue_env.rules import parse_policy
from tests.networks import random_network


def test_a_file_gives_the_network_back(tmp_path: Path) -> None:
    network, path = random_network(3, (4,), "relu"), tmp_path / "net.json"
    write_network(path, network, {"command": "python -m train.es", "seed": 1})
    again, training = read_network(path)
    assert again.parameters == network.parameters
    assert training == {"command": "python -m train.es", "seed": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["net.json"]
    policy = parse_policy(f"learned:{path}")
    assert policy.label == f"learned:{path}"
    assert isinstance(policy.user, NetworkPolicy)
    assert policy.user.training == training
    from_file, direct = (simulate("high-load-2", p, jobs=5000) for p in (policy, network_policy(network, name="net")))
    assert from_file.mean_response == direct.mean_response


def written(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "net.json"
    write_network(path, random_network(3, (2,), features=("load", "crowd")), {})
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def layer(weights: Any, biases: Any = None) -> dict[str, Any]:
    return {"weights": weights, "biases": [0] * len(weights) if biases is None else biases}


NUMBER = "must be a number from -1000000 to 1000000"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "must be an object with the format 'queue-env network'"),
        ({"version": 2}, "version must be 1, in which features mean what they mean here, got 2"),
        ({"features": ["load", "size"]}, "features must be names among anchor_size, .*, got"),
        ({"features": ["load", "load"]}, "features must be names among"),
        ({"features": 3}, "features must be a list of names, got 3"),
        ({"features": {"load": 1, "crowd": 2}}, "features must be a list of names, got {"),
        ({"features": ["load", ["crowd"]]}, "features must be names among"),
        ({"activation": "sin"}, "activation must be tanh or relu, got 'sin'"),
        ({"activation": None}, "activation must be tanh or relu, got None"),
        ({"widths": [2, 3, 1]}, r"widths must be \[2, 2, 1\], those of the layers, got"),
        ({"widths": None}, r"widths must be \[2, 2, 1\], those of the layers, got None"),
        ({"widths": [2, 2, True]}, r"widths must be \[2, 2, 1\], those of the layers, got \[2, 2, True\]"),
        ({"version": 1.0}, "version must be 1, in which features mean what they mean here, got 1.0"),
        ({"version": True}, "version must be 1, in which features mean what they mean here, got True"),
        ({"layers": None}, "layers must be a list of objects, got None"),
        ({"layers": [[1, 2]]}, r"layers\[0\] must be an object with weights and biases, got \[1, 2\]"),
        ({"layers": []}, "layers must be 1 to 8 layers of at most 32 numbers, the last of one"),
        ({"layers": [{"weights": [[1, 2]]}]}, r"layers\[0\]: 'biases' is missing"),
        (
            {"layers": [{"weights": [[1, 2]], "biases": [0], "scale": 2}]},
            r"layers\[0\]: the key 'scale' is not known, allowed: weights, biases",
        ),
        ({"note": "x"}, "the file: the key 'note' is not known, allowed: format, version, features, widths, activ"),
        ({"layers": [layer([[1, 2]] * 33)]}, "layers must be 1 to 8"),
        ({"layers": [layer([[1, 2]] * 2)]}, "layers must be 1 to 8"),
        ({"layers": [layer([[1, 2, 3]])]}, r"weights must be of shapes \[\(1, 2\)\], got"),
        (
            {"layers": [layer([[1, 2], [3]])]},
            r"the lengths of the rows of layers\[0\].weights must be equal, got \[2, 1\]",
        ),
        (
            {"layers": [layer([[1, 2], 3])]},
            r"layers\[0\].weights must be a list of rows of numbers, got \[\[1, 2\], 3\]",
        ),
        ({"layers": [layer("12")]}, r"layers\[0\].weights must be a list of rows of numbers, got '12'"),
        ({"layers": [layer([[1, 2]], 0)]}, r"layers\[0\].biases must be a list of numbers, got 0"),
        ({"layers": [layer([[1, 2]], [[0]])]}, r"layers\[0\].biases must be a list of numbers, got \[\[0\]\]"),
        ({"layers": [layer([[1, 2]], ["0"])]}, rf"layers\[0\].biases\[0\] {NUMBER}, got '0'"),
        *(
            ({"layers": [layer([[1, value]])]}, rf"layers\[0\].weights\[0\]\[1\] {NUMBER}, got {shown}")
            for value, shown in (
                ("x", "'x'"),
                ("2", "'2'"),
                (True, "True"),
                (None, "None"),
                ([1], r"\[1\]"),
                (1e9, "1000000000.0"),
                (math.nan, "nan"),
                (-math.inf, "-inf"),
                (10**400, "10{76}[.]{3}"),
            )
        ),
        ({"training": [1]}, r"training must be an object, got \[1\]"),
        ({"training": 3}, "training must be an object, got 3"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(ValueError, match=f"network '{path}': (?!network).*{message}"):
        parse_policy(f"learned:{path}")


@pytest.mark.parametrize(
    ("value", "shown"),
    [("2", "'2'"), (True, "True"), (np.True_, "(np[.])?True_?"), (10**400, "10{76}[.]{3}"), (1j, "1j")],
)
def test_weights_that_are_no_numbers(value: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=rf"network: weights\[0\]\[0\]\[1\] {NUMBER}, got {shown}"):
        Network(("load", "crowd"), ([[1.0, value]],), ([0.0],))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=rf"network: biases\[0\]\[0\] {NUMBER}, got {shown}"):
        Network(("load", "crowd"), ([[1.0, 2.0]],), ([value],))  # type: ignore[arg-type]


def test_weights_of_every_kind_of_number() -> None:
    network = Network(("load", "crowd"), ([[1, Fraction(1, 2)]],), (np.float32([0.25]),))  # type: ignore[arg-type]
    assert network.vector.tolist() == [0.25, 1.0, 0.5]


@pytest.mark.parametrize("where", ["[", '{"a":', '{"format": "queue-env network", "training": ['])
def test_files_that_are_nested_too_deep(tmp_path: Path, where: str) -> None:
    path = tmp_path / "net.json"
    path.write_text(where * 100_000)
    with pytest.raises(ValueError, match=f"network '{path}': must be a JSON file that is nested less deep"):
        parse_policy(f"learned:{path}")


@pytest.mark.parametrize("depth", [100, 900, 5000])
def test_weights_that_are_nested_too_deep(tmp_path: Path, depth: int) -> None:
    path = written(tmp_path, layers="DEEP")
    deep = "[" * depth + "]" * depth
    path.write_text(path.read_text().replace('"DEEP"', f'[{{"weights": {deep}, "biases": {deep}}}]'))
    with pytest.raises(ValueError, match=f"network '{path}': (layers.0..weights must be|must be a JSON file that is)"):
        parse_policy(f"learned:{path}")


@pytest.mark.parametrize("name", ["learned:", "learned: "])
def test_a_name_without_a_file(name: str) -> None:
    with pytest.raises(ValueError, match=f"policy='{name}' names no file; allowed: learned:FILE.json"):
        parse_policy(name)


def test_files_that_are_not_there_or_no_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"network 'none.json': cannot be read: No such file"):
        parse_policy("learned:none.json")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        parse_policy(f"learned:{tmp_path}")
    for content in (b"{", b"\xff\xfe"):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(ValueError, match="must be a JSON file, but"):
            parse_policy(f"learned:{tmp_path / 'bad.json'}")
