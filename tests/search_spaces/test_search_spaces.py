"""The search spaces: one a method, in agreement with it, and mistakes in them in one sentence."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from bench.errors import UserError
from bench.suite.methods import METHODS, WRAPPERS
from search_spaces.spaces import FOLDER, Distribution, load_space

every_method = pytest.mark.parametrize("method", METHODS.names())


@every_method
def test_every_method_has_a_space_that_it_accepts(method: str) -> None:
    """Independently of the loader's own check: by building the method at every corner."""
    space = load_space(method)
    kind = METHODS.load(method)
    own = kind().model_dump(mode="json")
    for key, parameter in space.hyperparameters.items():
        assert own[key] == parameter.default
        for value in (*parameter.paper, *parameter.wide.values):
            assert kind(**{key: value}).model_dump(mode="json")[key] == value


@every_method
def test_training_is_swept_alike_for_every_method(method: str) -> None:
    """But for methods that come with an optimiser of their own, whose rates are of another order."""
    space = load_space(method)
    assert "optimiser.lr" in space.training
    own = METHODS.load(method)().client_optimiser
    if own is None:
        assert space.training == load_space("fedavg").training
    else:
        assert space.training["optimiser.lr"].default == own.lr


def test_there_is_no_space_without_a_method() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.yaml")) == sorted(
        [*METHODS.names(), *WRAPPERS.names()]
    )


def test_a_space_is_read_as_written() -> None:
    lam = load_space("fedlsa").hyperparameters["lam"]
    assert (lam.default, lam.paper) == (0.7, (0.1, 0.7))
    assert (lam.wide.kind, lam.wide.values) == ("log_uniform", (0.001, 1.0))


def fedprox(**mu: Any) -> dict[str, Any]:
    """FedProx's space with another entry for mu."""
    entry = {"default": 0.01, "paper": [0.01], "wide": {"log_uniform": [0.001, 1.0]}}
    rate = {"default": 0.01, "paper": [0.01], "wide": {"log_uniform": [0.001, 0.1]}}
    return {"method": "fedprox", "hyperparameters": {"mu": entry | mu}, "training": {"optimiser.lr": rate}}


def load(raw: Any, folder: Path) -> Any:
    (folder / "fedprox.yaml").write_text(
        raw if isinstance(raw, str) else yaml.safe_dump(raw), encoding="utf-8"
    )
    return load_space("fedprox", folder)


def test_a_space_of_ones_own_can_be_loaded(tmp_path: Path) -> None:
    assert load(fedprox(paper=[0.5, 0.6]), tmp_path).hyperparameters["mu"].paper == (0.5, 0.6)


def other_hyperparameter(name: str) -> dict[str, Any]:
    raw = fedprox()
    return raw | {"hyperparameters": {name: raw["hyperparameters"]["mu"]}}


def other_training(key: str, low: float = 0.001) -> dict[str, Any]:
    entry = {"default": 0.01, "paper": [0.01], "wide": {"uniform": [low, 0.1]}}
    return fedprox() | {"training": {key: entry}}


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (fedprox(default=0.02), "the default of mu is 0.01 in the method but 0.02 here"),
        (fedprox(paper=[0.01, -1]), "mu = -1: input should be greater than or equal to 0"),
        (fedprox(wide={"uniform": [-1, 1]}), "mu = -1: input should be greater than or equal to 0"),
        (fedprox(wide={"uniform": [0.1, 1]}), "the default 0.01 is outside of the wide distribution"),
        (fedprox(wide={"choice": [0.1, 1]}), "the default 0.01 is outside of the wide distribution"),
        (
            fedprox(wide={"gaussian": [0, 1]}),
            "give exactly one of uniform, log_uniform, int, choice with a list",
        ),
        (fedprox(wide={"log_uniform": [0, 1]}), "the ends of log_uniform must be above 0"),
        (fedprox(paper=[]), "hyperparameters.mu.paper"),
        (fedprox(papers=[1]), "unknown key 'hyperparameters.mu.papers'"),
        (other_hyperparameter("mue"), "unknown hyperparameter 'mue'; did you mean 'mu'?"),
        (other_training("optimiser.rate"), "unknown key 'sgd.rate'"),
        (other_training("optimizer.lr"), "unknown key 'optimizer'; did you mean 'optimiser'?"),
        (other_training("optimiser.lr", low=-1), "sgd.lr = -1: input should be greater than 0"),
        (fedprox() | {"method": "fedavg"}, "is for method 'fedavg'"),
        ({"method": "fedprox"}, "key 'training' is missing"),
        ("- just\n- a list\n", "must hold a mapping"),
        ("method: [", "is not valid YAML"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(raw: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load(raw, tmp_path)
    text = str(caught.value)
    assert sentence in text
    assert "fedprox.yaml" in text
    assert "\n" not in text


def test_a_missing_file_and_an_unknown_method_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="method 'fedprox' has no search space"):
        load_space("fedprox", tmp_path)
    with pytest.raises(UserError, match="unknown method 'fedprx'; did you mean 'fedprox'"):
        load_space("fedprx")


@pytest.mark.parametrize(
    "raw",
    [
        {"uniform": [1, 1]},
        {"uniform": [1]},
        {"uniform": ["0.1", "1e-3"]},
        {"int": [1, 2.5]},
        {"int": [True, 3]},
        {"uniform": [0, 1], "int": [0, 1]},
        {"choice": []},
        [0, 1],
    ],
)
def test_a_distribution_that_makes_no_sense_is_refused(raw: Any) -> None:
    with pytest.raises(ValidationError):
        Distribution.model_validate(raw)


@pytest.mark.parametrize(
    ("raw", "inside", "outside"),
    [
        ({"int": [1, 5]}, 5, 6),
        ({"uniform": [0, 1]}, 0.5, -0.5),
        ({"choice": ["mean", "weighted_mean"]}, "mean", "median"),
        ({"choice": [True, False]}, True, "yes"),
    ],
)
def test_what_a_distribution_covers(raw: Any, inside: Any, outside: Any) -> None:
    distribution = Distribution.model_validate(raw)
    assert distribution.covers(inside)
    assert not distribution.covers(outside)
