"""Networks made up at random, for tests, and their policies."""

from __future__ import annotations

import numpy as np

from queue_env.network import NAMES, Network, NetworkPolicy, network_policy


def random_network(
    seed: int, hidden: tuple[int, ...] = (), activation: str = "tanh", features: tuple[str, ...] = NAMES
) -> Network:
    """A network of moderate weights, whose rates are neither all near zero nor all near one."""
    widths = (len(features), *hidden, 1)
    rng = np.random.default_rng(seed)
    pairs = list(zip(widths[1:], widths[:-1], strict=True))
    weights = tuple(1.5 * rng.normal(size=shape) / np.sqrt(shape[1]) for shape in pairs)
    return Network(features, weights, tuple(0.3 * rng.normal(size=outputs) for outputs, _ in pairs), activation)


def random_policy(seed: int, hidden: tuple[int, ...] = (), activation: str = "tanh") -> NetworkPolicy:
    """Such a network as a policy."""
    return network_policy(random_network(seed, hidden, activation), name=f"net{seed}")
