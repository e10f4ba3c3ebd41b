"""The search space of a method that has no file: derived from the fields of its class.

| field | searched over |
|---|---|
| bool, Literal | all its values |
| number between two bounds | the numbers between them |
| positive number | a decade below the default to a decade above, on a log scale, within its bounds |
| whole number between two bounds | all of them |
| positive whole number | a quarter of the default to four times the default, within its bounds |
| `optimiser` | its learning rate |

Everything else is left out: a default of 0 without bounds has no scale, and texts and lists have no range.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bench.errors import UserError
from search_spaces.checks import check_space
from search_spaces.model import Distribution, Parameter, Space

if TYPE_CHECKING:
    from methods.base import FedAlgorithm

DECADE = 10
FACTOR = 4
"""How far whole numbers go from the default."""
MARGIN = 0.01
"""How far from a bound that is not allowed itself a range ends, as a share of the way to the default."""
RATE = 0.01
"""The default of the learning rate where the suite's optimiser is used."""
RATES = {"sgd": (1e-4, 1.0), "adam": (1e-5, 0.1), "adamw": (1e-5, 0.1)}
"""Learning rates worth trying, by the name of the optimiser."""


def derived_space(method: str, kind: type[FedAlgorithm]) -> Space:
    """What the types, defaults and bounds of the fields say; every value of it is shown to the method."""
    schema = kind.model_json_schema()
    found = {
        key: _parameter(kind.model_fields[key].default, schema["properties"][key], schema)
        for key in own_fields(kind)
    }
    hyperparameters = {key: parameter for key, parameter in found.items() if parameter is not None}
    training = {} if "inner" in kind.model_fields or kind.one_round else {"optimiser.lr": _rate(kind)}
    space = Space(method=method, hyperparameters=hyperparameters, training=training)
    try:
        check_space(space, kind, f"search space derived from the fields of {method}")
    except UserError as error:
        raise UserError(f"{error}; write {method}.yaml beside its file, as in CONTRIBUTING.md") from None
    return space


def own_fields(kind: type[FedAlgorithm]) -> list[str]:
    """The fields that say what this method does; not those that every method has."""
    from methods.fedavg import FedAvg

    return [key for key in kind.model_fields if key not in {*FedAvg.model_fields, "inner"}]


def _parameter(default: Any, schema: dict[str, Any], root: dict[str, Any]) -> Parameter | None:
    """None if the type and the default give no range."""
    if "$ref" in schema:
        schema = {**root["$defs"][schema["$ref"].rpartition("/")[2]], **schema}
    wide = _distribution(default, schema)
    return None if wide is None else Parameter(default=default, wide=wide)


def _distribution(default: Any, schema: dict[str, Any]) -> Distribution | None:
    kind = schema.get("type")
    if kind == "boolean":
        return _made("choice", False, True)
    if len(schema.get("enum", ())) > 1:
        return _made("choice", *schema["enum"])
    if kind == "integer" and isinstance(default, int):
        return _whole_numbers(default, schema)
    if kind == "number" and isinstance(default, int | float):
        return _numbers(float(default), schema)
    return None


def _whole_numbers(default: int, schema: dict[str, Any]) -> Distribution | None:
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf) + 1)
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf) - 1)
    if math.isinf(low) or math.isinf(high):
        if default < 1:
            return None
        low, high = max(low, default // FACTOR, 1), min(high, default * FACTOR)
    return _made("int", int(low), int(high)) if low < high else None


def _numbers(default: float, schema: dict[str, Any]) -> Distribution | None:
    low, high = _end(default, schema, "inimum", -math.inf), _end(default, schema, "aximum", math.inf)
    if not (math.isinf(low) or math.isinf(high)):
        return _made("uniform", low, high)
    if default <= 0:
        return None
    return _made("log_uniform", max(low, _short(default / DECADE)), min(high, _short(default * DECADE)))


def _end(default: float, schema: dict[str, Any], bound: str, without: float) -> float:
    """The last number that is allowed in the direction of a bound."""
    if f"m{bound}" in schema:
        return float(schema[f"m{bound}"])
    if f"exclusiveM{bound}" in schema:
        limit = float(schema[f"exclusiveM{bound}"])
        return _short(limit + MARGIN * (default - limit))
    return without


def _rate(kind: type[FedAlgorithm]) -> Parameter:
    own = kind().client_optimiser
    default = RATE if own is None else float(own.lr)
    low, high = RATES["sgd" if own is None else own.name]
    wide = _made("log_uniform", min(low, _short(default / DECADE)), max(high, _short(default * DECADE)))
    return Parameter(default=default, wide=wide)


def _made(kind: str, *values: Any) -> Distribution:
    return Distribution.model_validate({kind: list(values)})


def _short(number: float) -> float:
    """Without the last digits that rounding adds, as in 0.1 · 3."""
    return float(f"{number:.6g}")
