"""What an environment itself sees of its episodes, to be compared with what a library says of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

import queue_env  # noqa: F401  (registers the id)

ID = "queue_env/MGn-v0"


class Watch:
    """The steps, episodes and actions of one environment, or of a vector environment.

    It takes the place of the environment's own ``step`` and is no wrapper, so that the library still meets the
    environment itself, and whatever it looks for in it.

    Attributes:
        steps: transitions made; calls that only reset are none.
        lengths: of the finished episodes.
        returns: of the finished episodes.
        served: of the finished episodes, from their summary.
        lowest: least entry of an action.
        highest: greatest entry of an action.
    """

    def __init__(self, env: Any) -> None:
        self.steps = 0
        self.lengths: list[int] = []
        self.returns: list[float] = []
        self.served: list[int] = []
        self.lowest, self.highest = math.inf, -math.inf
        self._step = env.step
        self._many = isinstance(env, VectorEnv)
        count = env.num_envs if self._many else 1
        self._mode = env.metadata["autoreset_mode"] if self._many else AutoresetMode.DISABLED
        self._length, self._return, self._over = np.zeros(count, int), np.zeros(count), np.zeros(count, bool)
        env.step = self._watched

    def _watched(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.lowest = min(self.lowest, float(np.min(action)))
        self.highest = max(self.highest, float(np.max(action)))
        result = self._step(action)
        _, reward, terminated, truncated, info = result
        real = ~self._over if self._mode is AutoresetMode.NEXT_STEP else np.ones_like(self._over)
        self.steps += int(real.sum())
        self._length += real
        self._return += np.where(real, reward, 0.0)
        done = np.logical_or(terminated, truncated).reshape(-1)
        for i in np.flatnonzero(done):
            self.lengths.append(int(self._length[i]))
            self.returns.append(float(self._return[i]))
            served = info.get("final_info", info)["summary"]["served"]
            self.served.append(int(served[i]) if self._many else served)
        self._length[done], self._return[done] = 0, 0.0
        self._over = done
        return result


def parameters_of(module: Any) -> list[np.ndarray]:
    """Copies of a network's parameters."""
    return [parameter.detach().cpu().numpy().copy() for parameter in module.parameters()]


def assert_learned(before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> None:
    """The parameters have changed, and are finite."""
    assert len(before) == len(after) > 0
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True)), "no parameter has changed"
    assert all(np.isfinite(b).all() for b in after), "a parameter is not finite"


def assert_same_episodes(watch: Watch, lengths: Iterable[float], returns: Iterable[float], rel: float = 1e-5) -> None:
    """The episodes that a library has seen, in any order, are those of the environment; the library's are float32."""
    seen = sorted(zip(map(int, lengths), map(float, returns), strict=True))
    true = sorted(zip(watch.lengths, watch.returns, strict=True))
    assert len(seen) > 2, f"too few episodes: {len(seen)}"
    assert [length for length, _ in seen] == [length for length, _ in true]
    np.testing.assert_allclose([total for _, total in seen], [total for _, total in true], rtol=rel, atol=1e-6)
