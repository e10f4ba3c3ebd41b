"""The search spaces: one a method, in agreement with it, and mistakes in them in one sentence."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from bench.contract.method_under_test import MethodUnderTest
from bench.contract.nests import differing
from bench.contract.runs import Course
from bench.errors import UserError
from bench.suite.methods import METHODS, WRAPPERS
from methods.core.optimisers import SGD
from search_spaces.model import Distribution
from search_spaces.spaces import FOLDER, load_space

LORA = {
    "fedalt", "feddpa", "fedex_lora", "fedlora", "fedsa_lora", "fedsdg", "fedsvd", "ffa_lora", "flexlora",
    "flora", "lora_fair", "pf2lora", "rolora",
}  # fmt: skip
"""Methods that train adapters of a frozen transformer, as suites do it with Adam."""

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
def test_rates_are_those_of_the_optimiser(method: str) -> None:
    """SGD up to 1, Adam of adapters up to 0.1, and the method's own around its default."""
    kind = METHODS.load(method)
    training = load_space(method).training
    if not training:
        return
    assert list(training) == ["optimiser.lr"]
    rate = training["optimiser.lr"]
    own = kind().client_optimiser
    adapters = method in LORA
    assert rate.default == (own.lr if own else 0.001 if adapters else 0.01)
    if own is None or own.name == "sgd":
        assert rate.wide.kind == "log_uniform"
        assert rate.wide.values == ((0.00001, 0.1) if adapters else (0.0001, 1.0))


@every_method
def test_the_rate_is_searched_where_it_changes_what_comes_out(method: str) -> None:
    """What clients send and keep in two rounds at one rate of the suite's optimiser and at another."""
    subject = MethodUnderTest(METHODS.load(method))
    if subject.method.client_optimiser is not None:
        assert load_space(method).training
        return
    one, other = (
        Course.of(subject.problem(epochs=1, optimiser=SGD(lr=lr)), rounds=2).work for lr in (0.01, 0.02)
    )
    changed = any(
        differing(
            {"reply": first.reply.content, "kept": first.kept},
            {"reply": second.reply.content, "kept": second.kept},
        )
        for first, second in zip(one, other, strict=True)
    )
    assert changed is bool(load_space(method).training)


@pytest.mark.parametrize("wrapper", WRAPPERS.names())
def test_a_wrapper_has_the_rates_of_the_method_inside(wrapper: str) -> None:
    assert load_space(f"{wrapper}+fedavg").training == load_space("fedavg").training


@pytest.mark.parametrize("name", [*METHODS.names(), *WRAPPERS.names()])
def test_no_default_and_no_value_of_a_paper_is_near_the_end_of_its_range(name: str) -> None:
    """In the outer 5 % only where the end is a bound of the field: the best may lie beyond any other end."""
    method = f"{name}+fedavg" if name in WRAPPERS.names() else name
    space, schema = load_space(method), METHODS.load(method).model_json_schema()["properties"]
    near = [
        f"{key}: {value} in {parameter.wide.values}"
        for key, parameter in {**space.hyperparameters, **space.training}.items()
        for value in (parameter.default, *parameter.paper)
        if is_near_an_end(value, parameter.wide, bounds(schema.get(key, {})))
    ]
    assert near == []


def bounds(schema: dict[str, Any]) -> set[float]:
    """The numbers beyond which a field takes none."""
    options = [schema, *schema.get("anyOf", ())]
    names = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    return {float(option[name]) for option in options for name in names if name in option}


def is_near_an_end(value: Any, wide: Distribution, hard: set[float]) -> bool:
    numbers = [each for each in wide.values if isinstance(each, int | float) and not isinstance(each, bool)]
    if not isinstance(value, int | float) or len(numbers) < 2:
        return False
    low, high = min(numbers), max(numbers)
    if wide.kind == "choice":
        place = 0.0 if value <= low else 1.0 if value >= high else 0.5
    elif wide.kind == "log_uniform":
        place = math.log(value / low) / math.log(high / low) if value > 0 else 0.0
    else:
        place = (value - low) / (high - low)
    return (place < 0.05 and low not in hard) or (place > 0.95 and high not in hard)


@pytest.mark.parametrize(
    ("value", "wide", "hard", "near"),
    [
        (0.8, {"log_uniform": [0.0001, 1.0]}, set(), True),
        (0.5, {"log_uniform": [0.0001, 1.0]}, set(), False),
        (0.98, {"uniform": [0.0, 1.0]}, set(), True),
        (0.98, {"uniform": [0.0, 1.0]}, {1.0}, False),
        (500, {"choice": [50, 100, 500]}, set(), True),
    ],
)
def test_what_near_an_end_means(value: Any, wide: dict[str, Any], hard: set[float], near: bool) -> None:
    assert is_near_an_end(value, Distribution.model_validate(wide), hard) is near


def test_what_a_paper_prints_is_not_the_default_of_everybody() -> None:
    """FedSDG's rate is Adam's, and for FedAvg nothing is known that its paper prints."""
    rate = load_space("fedsdg").training["optimiser.lr"]
    assert (rate.paper, rate.source) == ((0.001,), "paper (Adam)")
    assert load_space("fedavg").training["optimiser.lr"].paper == ()


def test_there_is_no_space_without_a_method() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.yaml")) == sorted(
        [*METHODS.names(), *WRAPPERS.names()]
    )


def test_a_space_is_read_as_written() -> None:
    lam = load_space("fedlsa").hyperparameters["lam"]
    assert (lam.default, lam.paper) == (0.7, (0.1, 0.7))
    assert (lam.wide.kind, lam.wide.values) == ("log_uniform", (0.001, 10.0))


def fedprox(**mu: Any) -> dict[str, Any]:
    """FedProx's space with another entry for mu."""
    entry = {"default": 0.01, "paper": [0.01], "source": "Section 5", "wide": {"log_uniform": [0.001, 1.0]}}
    rate = {"default": 0.01, "wide": {"log_uniform": [0.001, 0.1]}}
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
    entry = {"default": 0.01, "wide": {"uniform": [low, 0.1]}}
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
        (fedprox(source=""), "paper has values but no source: say where they are printed"),
        (fedprox(paper=[]), "source is given but paper has no values"),
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


def test_a_wrapper_cannot_have_rates(tmp_path: Path) -> None:
    raw = fedprox() | {"method": "dp", "hyperparameters": {}}
    (tmp_path / "dp.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    with pytest.raises(UserError, match=r"dp\.yaml: the method inside has the optimiser; write 'training"):
        load_space("dp+fedavg", tmp_path)


def test_an_unknown_method_has_no_space() -> None:
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
