"""Laws of sizes, patience and gaps by name and numbers: `law({"law": "pareto", "alpha": 1.5, "mean": 1})`."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from queue_env.distributions.atoms import AtomicLaw, Deterministic, Empirical
from queue_env.distributions.base import ContinuousLaw, Law
from queue_env.distributions.light import Exponential, Lognormal, Uniform, Weibull
from queue_env.distributions.mixtures import Hyperexponential
from queue_env.distributions.power import BoundedPareto, Lomax, Pareto

__all__ = [
    "LAWS",
    "AtomicLaw",
    "BoundedPareto",
    "ContinuousLaw",
    "Deterministic",
    "Empirical",
    "Exponential",
    "Hyperexponential",
    "Law",
    "Lognormal",
    "Lomax",
    "Pareto",
    "Uniform",
    "Weibull",
    "law",
]

LAWS: dict[str, type[Law]] = {
    kind.name: kind
    for kind in (
        Pareto,
        Lomax,
        BoundedPareto,
        Weibull,
        Lognormal,
        Exponential,
        Hyperexponential,
        Uniform,
        Deterministic,
        Empirical,
    )
}


def law(spec: Mapping[str, Any] | Law) -> Law:
    """The law that a spec describes.

    Args:
        spec: A mapping with the name under "law" and the parameters by name, such as
            `{"law": "weibull", "shape": 0.4, "mean": 1}`; each class says which. A law is returned as is.

    Raises:
        ValueError: If the law is unknown, or if a parameter is missing, unknown or out of range.
    """
    if isinstance(spec, Law):
        return spec
    if not isinstance(spec, Mapping) or "law" not in spec:
        raise ValueError(f"spec must be a mapping such as {{'law': 'exponential', 'mean': 1}}, got {spec!r}")
    name = spec["law"]
    if not isinstance(name, str) or name not in LAWS:
        raise ValueError(f"law must be one of {', '.join(LAWS)}, got {name!r}{_suggestion(name, LAWS)}")
    forms = LAWS[name].forms()
    parameters = {key: value for key, value in spec.items() if key != "law"}
    for names, build in forms.items():
        if set(names) == set(parameters):
            return build(**parameters)
    _refuse_parameters(name, parameters, list(forms))


def _refuse_parameters(name: str, parameters: Mapping[str, Any], forms: list[tuple[str, ...]]) -> NoReturn:
    """Say which parameter is unknown or missing, and what the law takes."""
    known = {parameter for names in forms for parameter in names}
    takes = " or ".join(f"({', '.join(names)})" for names in forms)
    unknown = [key for key in parameters if key not in known]
    if unknown:
        value = parameters[unknown[0]]
        problem = f"unknown parameter {unknown[0]!r} (value {value!r}){_suggestion(unknown[0], known)}"
    elif any(set(names) > set(parameters) for names in forms):
        closest = min((names for names in forms if set(names) > set(parameters)), key=len)
        problem = f"missing parameter {next(key for key in closest if key not in parameters)!r}"
    else:
        problem = f"the parameters {', '.join(map(repr, parameters))} do not go together"
    raise ValueError(f"{name} takes {takes}: {problem}")


def _suggestion(word: object, known: Mapping[str, object] | set[str]) -> str:
    close = get_close_matches(str(word), sorted(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
