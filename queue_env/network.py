"""Small networks that set the anchor's rate, run inside the compiled kernel: what they see, and their files.

A network is a policy like any other: the anchor of ``dynasplit`` at the rate that the network gives, SRPT for the rest.
Its weights are numbers handed to the kernel, so that nothing is compiled for a new one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env.distributions.checks import refuse, whole
from queue_env.kernel import layout
from queue_env.user_policies import UserPolicy

__all__ = [
    "FEATURES",
    "SHIPPED",
    "Feature",
    "Network",
    "NetworkPolicy",
    "network_file",
    "network_policy",
    "read_network",
    "shipped_networks",
    "write_network",
]

FloatArray: TypeAlias = NDArray[np.float64]

FORMAT, VERSION = "queue-env network", 1
KEYS = ("format", "version", "features", "widths", "activation", "layers", "training")
LAYER_KEYS = ("weights", "biases")
ACTIVATIONS = ("tanh", "relu")  # in the order of the kernel's codes
MOST_WIDE, MOST_LAYERS = layout.WIDEST, 8
MOST_WEIGHT = 1e6  # so large that no sum overflows
PREFIX, SHIPPED_PREFIX = "learned:", "learned-"
SHIPPED = Path(__file__).parents[1] / "baselines" / "learned"
"""The directory of the networks that come with the package."""


class Feature(NamedTuple):
    """One number that a network can see, and its meaning, with work and time in mean sizes."""

    name: str
    meaning: str


FEATURES = (
    Feature("anchor_size", "ln(1 + z), z the anchor's original size"),
    Feature("anchor_remaining", "ln(1 + r), r what remains of the anchor"),
    Feature("anchor_age", "ln(1 + a), a the time since the anchor's arrival"),
    Feature("next_remaining", "ln(1 + p), p what remains of the job that shares a server with the anchor"),
    Feature("next_age", "ln(1 + the time since that job's arrival)"),
    Feature("least_remaining", "ln(1 + the least that remains of a job other than the anchor)"),
    Feature("others_work", "ln(1 + b), b the remaining work of all jobs but the anchor"),
    Feature("crowd", "ln(N/n), N jobs present on n servers"),
    Feature("servers", "ln n"),
    Feature("load", "rho"),
    Feature("spare", "delta = n(1 - rho)"),
)
"""All that a network can see, in the order of the kernel's codes. A change of meaning takes another `VERSION`."""

NAMES = tuple(feature.name for feature in FEATURES)


@dataclass(frozen=True, eq=False)
class Network:
    """Layers of tanh or relu, the last with one number, of which the logistic function is the anchor's rate.

    With one layer it is a logistic rule.

    Attributes:
        features: names of the inputs, among `FEATURES`.
        weights: of each layer, shape (outputs, inputs).
        biases: of each layer, shape (outputs,).
        activation: between layers, "tanh" or "relu".

    Raises:
        ValueError: a feature is unknown or given twice, shapes do not fit, or a weight is not a number up to 1e6.
    """

    features: tuple[str, ...]
    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    activation: str = "tanh"

    def __post_init__(self) -> None:
        allowed = f"names among {', '.join(NAMES)}, each once, at least one"
        named = [name for name in self.features if name in NAMES]
        if not named or len(set(named)) != len(self.features):
            refuse("network", "features", allowed, self.features)
        if self.activation not in ACTIVATIONS:
            refuse("network", "activation", " or ".join(ACTIVATIONS), self.activation)
        weights = tuple(_numbers("network", f"weights[{k}]", part, 2) for k, part in enumerate(self.weights))
        biases = tuple(_numbers("network", f"biases[{k}]", part, 1) for k, part in enumerate(self.biases))
        shapes = [part.shape for part in weights]
        outputs = [len(part) for part in biases]
        inputs = [len(self.features), *outputs[:-1]]
        if not 1 <= len(shapes) <= MOST_LAYERS or outputs[-1:] != [1] or max(*inputs, *outputs) > MOST_WIDE:
            allowed = f"1 to {MOST_LAYERS} layers of at most {MOST_WIDE} numbers, the last of one"
            refuse("network", "layers", allowed, outputs)
        if shapes != list(zip(outputs, inputs, strict=True)):
            refuse("network", "weights", f"of shapes {list(zip(outputs, inputs, strict=True))}", shapes)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "biases", biases)

    @classmethod
    def from_vector(
        cls, features: Sequence[str], hidden: Sequence[int], vector: ArrayLike, activation: str = "tanh"
    ) -> Network:
        """Return the network with these hidden layers whose `vector` this is."""
        values = np.asarray(vector, np.float64)
        weights, biases, place = [], [], 0
        for inputs, outputs in pairwise([len(features), *hidden, 1]):
            rows = values[place : place + outputs * (inputs + 1)].reshape(outputs, inputs + 1)
            biases.append(rows[:, 0])
            weights.append(rows[:, 1:])
            place += rows.size
        if place != values.size:
            refuse("network", "vector", f"{place} numbers", values.size)
        return cls(tuple(features), tuple(weights), tuple(biases), activation)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of inputs, and of what each layer gives."""
        return (len(self.features), *map(len, self.biases))

    @property
    def vector(self) -> FloatArray:
        """All weights: for each number that a layer gives its bias and its weights."""
        rows = (np.column_stack(pair).ravel() for pair in zip(self.biases, self.weights, strict=True))
        return np.concatenate(list(rows))

    @property
    def parameters(self) -> tuple[float, ...]:
        """The policy's numbers for the kernel, but for the unit that comes first."""
        codes = [NAMES.index(name) for name in self.features]
        head = [ACTIVATIONS.index(self.activation), len(self.weights), *self.widths, *codes]
        return (*map(float, head), *self.vector.tolist())

    def logits(self, features: FloatArray) -> FloatArray:
        """Return what the last layer gives, shape (B,), for values of the features, shape (B, features)."""
        values = features
        for layer, (weights, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = values @ weights.T + bias
            if layer < len(self.weights) - 1:
                values = np.tanh(values) if self.activation == "tanh" else np.maximum(values, 0.0)
        return values[:, 0]

    def rates(self, features: FloatArray) -> FloatArray:
        """Return the anchor's rates, shape (B,), for values of the features, shape (B, features)."""
        with np.errstate(over="ignore"):  # far below zero it is zero
            return np.asarray(1.0 / (1.0 + np.exp(-self.logits(features))))


def _numbers(owner: str, name: str, values: ArrayLike, dimensions: int) -> FloatArray:
    """Return a list of numbers, or one of rows of numbers, as an array of one or two axes."""
    try:
        array = np.array(values, object)  # so that a text or a truth value stays what it is
    except ValueError:  # arrays of several axes that do not fit together
        array = np.array(None, object)
    if array.ndim != dimensions:
        rows = array.tolist() if array.ndim == 1 and dimensions == 2 else []
        if rows and all(isinstance(row, list | tuple | np.ndarray) for row in rows):
            refuse(owner, f"the lengths of the rows of {name}", "equal", [len(row) for row in rows])
        refuse(owner, name, "a list of numbers" if dimensions == 1 else "a list of rows of numbers", values)
    for place, value in np.ndenumerate(array):
        if not isinstance(value, Real) or isinstance(value, bool) or not -MOST_WEIGHT <= value <= MOST_WEIGHT:  # type: ignore[operator]
            where = name + "".join(f"[{index}]" for index in place)
            refuse(owner, where, f"a number from -{MOST_WEIGHT:.0f} to {MOST_WEIGHT:.0f}", value)
    return array.astype(np.float64)


# ---- as a policy ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NetworkPolicy(UserPolicy):
    """A network as a policy, and what its file says of its training; made by `network_policy`."""

    network: Network = field(compare=False)
    training: Mapping[str, Any] = field(default_factory=dict, compare=False)


def network_policy(network: Network, *, name: str, training: Mapping[str, Any] | None = None) -> NetworkPolicy:
    """Return the policy under which a network gives the anchor (see ``dynasplit``) its rate, and SRPT serves the rest.

    The network is asked after every event at which more jobs than servers are present; the rate holds until the next.

    Args:
        network: the network.
        name: its label.
        training: how it was found, if that is known.
    """
    kernel = {"family": layout.ANCHOR, "order": layout.REMAINING, "preemptive": 1, "rate_kind": layout.NETWORK}
    return NetworkPolicy(
        name=name,
        function=None,
        family=layout.ANCHOR,
        kernel=kernel,
        parameters=network.parameters,
        network=network,
        training=dict(training or {}),
    )


def shipped_networks() -> dict[str, Path]:
    """The files of the networks that come with the package, by the names of their policies."""
    return {f"{SHIPPED_PREFIX}{path.stem}": path for path in sorted(SHIPPED.glob("*.json"))}


def network_file(text: str) -> Path | None:
    """Return the file of the network that a policy's name stands for, or None if it is no such name.

    Args:
        text: ``learned:FILE.json``, or the name of one that comes with the package, such as ``learned-high-load-2``.

    Raises:
        ValueError: it names no file, or begins like the name of one that comes with the package, and there is none.
    """
    if text.startswith(PREFIX):
        if not text.removeprefix(PREFIX).strip():
            raise ValueError(f"policy={text!r} names no file; allowed: {PREFIX}FILE.json")
        return Path(text.removeprefix(PREFIX))
    shipped = shipped_networks()
    if text.startswith(SHIPPED_PREFIX) and text not in shipped:
        allowed = ", ".join([*shipped, f"{PREFIX}FILE.json"])
        raise ValueError(f"policy={text!r} is not known; allowed among learned policies: {allowed}")
    return shipped.get(text)


# ---- files ---------------------------------------------------------------------------------------


def read_network(path: str | Path) -> tuple[Network, dict[str, Any]]:
    """Read the file of a network.

    Args:
        path: a JSON file that `write_network` wrote.

    Returns:
        The network, and what the file says of its training.

    Raises:
        ValueError: there is no such file, or it is none of a network; says what is wrong.
    """
    owner = f"network {str(path)!r}"
    try:
        return _parsed(owner, _document(owner, Path(path)))
    except RecursionError:
        raise ValueError(f"{owner}: must be a JSON file that is nested less deep") from None


def _document(owner: str, path: Path) -> dict[str, Any]:
    """Return the object of a file, if it has the format, the version and the keys of a network."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{owner}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # neither JSON nor text
        raise ValueError(f"{owner}: must be a JSON file, but {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{owner}: must be an object with the format {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        refuse(owner, "version", f"{VERSION}, in which features mean what they mean here", version)
    _check_keys(owner, "the file", document, KEYS)
    return document


def _parsed(owner: str, document: Mapping[str, Any]) -> tuple[Network, dict[str, Any]]:
    features, layers, widths, training = (document[key] for key in ("features", "layers", "widths", "training"))
    if not isinstance(features, list):
        refuse(owner, "features", "a list of names", features)
    if not isinstance(layers, list):
        refuse(owner, "layers", "a list of objects", layers)
    if not isinstance(training, dict):
        refuse(owner, "training", "an object", training)
    for k, layer in enumerate(layers):
        _check_keys(owner, f"layers[{k}]", layer, LAYER_KEYS)
    weights = tuple(_numbers(owner, f"layers[{k}].weights", layer["weights"], 2) for k, layer in enumerate(layers))
    biases = tuple(_numbers(owner, f"layers[{k}].biases", layer["biases"], 1) for k, layer in enumerate(layers))
    try:
        network = Network(tuple(features), weights, biases, document["activation"])
    except ValueError as error:
        raise ValueError(f"{owner}: {str(error).removeprefix('network: ')}") from error
    expected = list(network.widths)
    if widths != expected or any(type(width) is not int for width in widths):
        refuse(owner, "widths", f"{expected}, those of the layers", widths)
    return network, training


def _check_keys(owner: str, name: str, value: object, keys: Sequence[str]) -> None:
    """Raise a ValueError unless the value is an object that has these keys and no others."""
    if not isinstance(value, dict):
        refuse(owner, name, f"an object with {' and '.join(keys)}", value)
    for key in keys:
        if key not in value:
            raise ValueError(f"{owner}: {name}: {key!r} is missing")
    for key in value:
        if key not in keys:
            raise ValueError(f"{owner}: {name}: the key {key!r} is not known, allowed: {', '.join(keys)}")


def write_network(path: str | Path, network: Network, training: Mapping[str, Any]) -> None:
    """Write a network to a file, which is written beside and renamed.

    Args:
        path: the file.
        network: the network.
        training: how it was found, JSON-able.
    """
    path = Path(path)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "features": list(network.features),
        "widths": list(network.widths),
        "activation": network.activation,
        "layers": [
            {"weights": weights.tolist(), "biases": biases.tolist()}
            for weights, biases in zip(network.weights, network.biases, strict=True)
        ],
        "training": dict(training),
    }
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(beside, path)


def check_hidden(owner: str, hidden: Sequence[int]) -> tuple[int, ...]:
    """Return the widths of hidden layers.

    Raises:
        ValueError: there are too many, or one is too wide.
    """
    if len(hidden) >= MOST_LAYERS:
        refuse(owner, "hidden", f"at most {MOST_LAYERS - 1} layers", list(hidden))
    return tuple(whole(owner, "hidden", width, 1, MOST_WIDE) for width in hidden)
