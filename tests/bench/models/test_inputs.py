"""Models and the shapes of inputs that they can be built for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.errors import UserError
from bench.models import MODELS, model_spec
from bench.models.base import Context, seeded_model
from tests.kit.cli import call_bench, write_suite

WIDTH = 12
NAMES = ("one", "two", "three", "four", "five")


@pytest.mark.parametrize("name", MODELS.names())
def test_a_model_predicts_from_features_or_refuses_them_when_it_is_built(name: str, tmp_path: Path) -> None:
    context = Context(NAMES, encoder=None, cache_root=tmp_path)
    try:
        model = seeded_model(model_spec({"name": name}), (WIDTH,), len(NAMES), seed=0, context=context)
    except UserError:  # other inputs, an option or an encoder is needed
        return
    model.eval()
    assert model(torch.zeros(2, WIDTH)).shape == (2, len(NAMES))


def test_a_model_of_pictures_on_an_encoders_features_is_refused_before_the_start(tmp_path: Path) -> None:
    few = {"name": "digits_mini", "limit": 20}  # for their features are computed first
    suite = write_suite(tmp_path, dataset=few, encoder="efficientnet_lite0", model={"name": "cnn"})
    outcome = call_bench("tune", "--suite", suite, "--out", tmp_path / "runs")
    assert outcome.code == 2
    last = outcome.err.splitlines()[-1]
    assert last.startswith("error: model 'cnn' takes pictures") and "choose head or mlp" in last
