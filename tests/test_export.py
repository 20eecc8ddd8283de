"""Networks as ONNX models and as programs of PyTorch give the rates that they give here."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from queue_env.export import EXTRA_FILE, describe, onnx_bytes, torch_bytes
from queue_env.network import FEATURES, NAMES, Network, read_network, shipped_networks
from tests.networks import random_network

pytest.importorskip("onnxruntime")
torch = pytest.importorskip("torch")

NETWORKS = {
    **{name: read_network(path)[0] for name, path in shipped_networks().items()},
    "logistic": random_network(1),
    "relu": random_network(2, (5, 3), "relu"),
    "wide": random_network(3, (32, 32), "tanh", NAMES[:1]),
    "extreme": Network(("load",), ([[1e6]],), ([-1e6],)),
}


def inputs(network: Network) -> np.ndarray:
    return np.random.default_rng(4).normal(1.0, 3.0, (50, len(network.features)))


@pytest.mark.parametrize("name", NETWORKS)
def test_onnx(name: str) -> None:
    import onnxruntime

    network = NETWORKS[name]
    model = onnxruntime.InferenceSession(onnx_bytes(network), providers=["CPUExecutionProvider"])
    for batch in (inputs(network), inputs(network)[:1]):
        (rates,) = model.run(["rate"], {"features": batch})
        assert rates.shape == (len(batch),)
        np.testing.assert_allclose(rates, network.rates(batch), rtol=1e-6, atol=1e-12)
    assert model.get_modelmeta().custom_metadata_map == describe(network)


@pytest.mark.parametrize("name", ["learned-high-load-2", "logistic", "relu"])
def test_torch(name: str) -> None:
    network = NETWORKS[name]
    extra = {EXTRA_FILE: ""}
    program = torch.export.load(io.BytesIO(torch_bytes(network)), extra_files=extra).module()
    for batch in (inputs(network), inputs(network)[:1]):
        rates = program(torch.from_numpy(batch))
        assert rates.shape == (len(batch),)
        np.testing.assert_allclose(rates, network.rates(batch), rtol=1e-6, atol=1e-12)
    assert json.loads(extra[EXTRA_FILE]) == describe(network)


def test_description() -> None:
    described = describe(random_network(1, features=("crowd", "load")))
    meanings = {feature.name: feature.meaning for feature in FEATURES}
    assert described == {"features": "crowd,load", "crowd": meanings["crowd"], "load": meanings["load"]}
