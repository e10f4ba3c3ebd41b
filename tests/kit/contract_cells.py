"""Real cells for the contract tests, and host actors on Ray that serve one cell after another."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bench.config.cell import CellConfig
from bench.contract.fixtures import PLAIN
from bench.engine.assembly import Assembled, assemble
from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.suite.methods import AROUND
from bench.suite.model import Suite
from bench.suite.planning import plan_cells
from tests.kit.contract import quick

CELL_MODELS: dict[str, dict[str, Any]] = {
    "mlp": {"name": "mlp", "hidden": 8},
    "cnn": {"name": "cnn", "channels": [2, 4], "features": 8, "embedding": 6, "grid": 4},
    "vit": {"name": "vit_mini"},
    "head": {"name": "head"},
    "norm": {"name": "cnn", "channels": [2, 4], "features": 8, "embedding": 6, "grid": 4, "use_bn": True},
}
NEED_CLIP = ("fedclip", "fedpgp", "fedtpg", "promptfl")
"""Cells of these cannot be assembled without the weights of a CLIP model."""


def needs_vectors(name: str, model: str) -> bool:
    """Whether the method is tested with this model on vectors instead of images."""
    return model == "head" or (AROUND in name and model == "mlp")


def accepted_cell_model(name: str) -> str:
    """The first model of a real cell on which the method runs."""
    refusals = []
    for model in CELL_MODELS:
        try:
            assemble(cell_config(name, model))
        except UserError as refusal:
            refusals.append(str(refusal))
        else:
            return model
    pytest.fail(f"add a model to CELL_MODELS in tests/kit/contract_cells.py: {'; '.join(refusals)}")


def cell_config(name: str, model: str, participation: float = 1.0, seed: int = 0) -> CellConfig:
    """A real cell on the built-in digits: five clients of four domains, of unequal sizes."""
    suite = Suite.model_validate(
        {
            "suite": "contract",
            "version": 1,
            "title": "Contract",
            "dataset": {"name": "digits_mini"},
            "partition": {
                "name": "by_domain",
                "clients": {"mnist": 2, "optdigits": 1, "blended": 1, "fonts": 1},
                "fraction": 0.01,
            },
            **({"encoder": "pixels"} if needs_vectors(name, model) else {}),
            "model": CELL_MODELS[model],
            "training": {
                "rounds": 3,
                "epochs": 2,
                "batch_size": 8,
                "participation": participation,
                "optimiser": PLAIN.model_dump(mode="json"),
                "validation": 0.2,
            },
            "methods": [{"name": name, "set": quick(name)}],
            "seeds": seed + 1,
        }
    )
    return plan_cells(suite)[seed].config


def assembled(config: CellConfig) -> Assembled:
    try:
        return assemble(config)
    except UserError as refusal:
        pytest.skip(str(refusal))


class KeptActors:
    """Stands in for the starting of host actors: a cell gets those of the cell before it, made anew.

    To start a process takes seconds, and there are many cells.
    """

    def __init__(self, place: Callable[[int, Conditions], Any]) -> None:
        self._place = place
        self._kept: dict[int, Any] = {}

    def place(self, bundle: int, conditions: Conditions) -> Any:
        import ray

        def start(*arguments: Any) -> Any:
            if bundle in self._kept:
                anew = self._kept[bundle].__ray_call__
                ray.get(anew.remote(lambda host, *given: host.__init__(*given), *arguments))
            else:
                self._kept[bundle] = self._place(bundle, conditions).remote(*arguments)
            return self._kept[bundle]

        return SimpleNamespace(remote=start)

    def forget(self) -> list[Any]:
        """The next cell gets new ones."""
        kept, self._kept = list(self._kept.values()), {}
        return kept
