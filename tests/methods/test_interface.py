"""The guide in the interface's docstring works, and every method says what its hyperparameters mean."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import BaseModel

from bench.contract.nests import flat
from bench.contract.runs import standing
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.suite.methods import METHODS, WRAPPERS
from methods.base import FedAlgorithm
from methods.core.optimisers import SGD, Adam, Group
from methods.fedavg import FedAvg
from methods.shared.alignment import Alignment
from tests.kit.contract import assert_close, differing, run, tiny_problem

KINDS = [METHODS.load(name) for name in METHODS.names()] + [WRAPPERS.load(name) for name in WRAPPERS.names()]

# The method in the docstring


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[type[Any]]:
    """The class that a newcomer would copy from the docstring into a file."""
    assert FedAlgorithm.__doc__ is not None
    block = re.search(r"A complete one:\n\n(.*?)\n\n    Saved as", FedAlgorithm.__doc__, re.DOTALL)
    assert block is not None
    file = tmp_path / "jitter.py"
    file.write_text(dedent(block[1]), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("jitter", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["jitter"] = module
    spec.loader.exec_module(module)
    yield module.Jitter
    del sys.modules["jitter"]


def test_the_method_in_the_docstring_runs_alike_in_order_and_stacked(toy: type[Any]) -> None:
    problem = tiny_problem(toy(sigma=0.5), "mlp")
    ends = []
    for kind in (LoopHost, StackedHost):
        host = kind(problem)
        ends.append(standing(run(problem, host, rounds=3, participation=0.7), host))
    in_order, stacked = ends
    assert_close(in_order, stacked, tolerance=1e-5)
    assert sum(int(state["rounds"]) for state in in_order["clients"].values()) == 3 * 2


def test_the_method_in_the_docstring_is_fedavg_where_it_says_so_and_only_there(toy: type[Any]) -> None:
    models = []
    for method in (FedAvg(), toy(**toy.neutral), toy()):
        problem = tiny_problem(method, "mlp")
        models.append(run(problem, LoopHost(problem), rounds=2).server["model"])
    assert differing(models[0], models[1]) == []
    assert set(differing(models[0], models[2])) == set(flat(models[0]))


def test_the_method_in_the_docstring_describes_its_hyperparameter(toy: type[Any]) -> None:
    assert toy.model_fields["sigma"].description.startswith("σ, the size of the noise")


# What every method declares


@pytest.mark.parametrize("kind", [*KINDS, SGD, Adam, Group, Alignment], ids=lambda kind: kind.__name__)
def test_every_hyperparameter_is_described(kind: type[BaseModel]) -> None:
    undescribed = [name for name, field in kind.model_fields.items() if not field.description]
    assert undescribed == []
    for name, field in kind.model_fields.items():
        assert field.description is not None and field.description.strip().endswith("."), name


@pytest.mark.parametrize("name", [*METHODS.names(), "ggeur+fedprox", "aligned+moon"])
def test_descriptions_and_defaults_are_in_the_schema(name: str) -> None:
    properties = METHODS.load(name).model_json_schema()["properties"]
    assert [key for key, schema in properties.items() if not schema.get("description")] == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_neutral_names_hyperparameters_or_gives_a_reason(kind: type[FedAlgorithm]) -> None:
    if isinstance(kind.neutral, str):
        assert kind.neutral and not kind.neutral.endswith(".")
    else:
        assert set(kind.neutral) <= set(kind.model_fields)


@pytest.mark.parametrize(
    ("name", "neutral"),
    [
        ("ggeur+fedavg", {"samples_per_class": 1}),
        ("ggeur+fedprox", {"samples_per_class": 1, "inner": {"mu": 0.0}}),
        ("ggeur+scaffold", "corrects drift at every setting"),
        ("aligned+fedavg", "weights clients by the agreement of their updates at every setting"),
    ],
)
def test_a_wrapped_method_is_neutral_where_both_are(name: str, neutral: Any) -> None:
    assert METHODS.load(name).neutral == neutral


def test_wrapped_methods_are_fedavg_where_they_say_so() -> None:
    kind = METHODS.load("ggeur+fedprox")
    assert not isinstance(kind.neutral, str)
    models = []
    for method in (FedAvg(), kind(**kind.neutral)):
        problem = tiny_problem(method, "head")
        server = run(problem, LoopHost(problem), rounds=2).server
        models.append(server.get("inner", server)["model"])
    assert differing(*models) == []
