"""The ids under which Gymnasium makes the environments."""

from __future__ import annotations

import gymnasium as gym

__all__ = ["IDS", "register_environments"]

_ENTRY = "queue_env.env:QueueEnv"
_VECTOR_ENTRY = "queue_env.vector_env:QueueVectorEnv"

IDS = {
    "queue_env/MGn-v0": "high-load-2",
    "queue_env/HighLoad2-v0": "high-load-2",
    "queue_env/HighLoad4-v0": "high-load-4",
    "queue_env/HighLoad10-v0": "high-load-10",
    "queue_env/LowLoad4-v0": "low-load-4",
    "queue_env/Light2-v0": "light-2",
    "queue_env/Impatient100-v0": "impatient-100",
    "queue_env/ImpatientDhr100-v0": "impatient-dhr-100",
}
"""The ids and the scenario each has by default."""


def register_environments() -> None:
    """Tell Gymnasium of the environments; doing it again changes nothing."""
    for name, scenario in IDS.items():
        if name not in gym.registry:
            kwargs = {"scenario": scenario}
            gym.register(name, entry_point=_ENTRY, vector_entry_point=_VECTOR_ENTRY, kwargs=kwargs)
