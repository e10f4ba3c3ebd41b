"""The space of a method without a file: derived from its fields, written down, and then read from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.search.space import describe, search_space
from bench.suite.methods import METHODS
from bench.suite.planning import plan_cells
from search_spaces.spaces import load_space, note_on_derivation
from search_spaces.writing import write_space
from tests.kit.tune import suite

MINE = '''"""Mine: FedAvg with a field of every kind."""

from typing import Annotated, Literal

from pydantic import Field

from methods.base import SGD, Adam, Optimiser, Role
from methods.fedavg import FedAvg
from methods.shared.one_round import OneRound


class NAME(BASE):
    label = "Mine"
    neutral = "is made up"

FIELDS
'''


def written(folder: Path, name: str, *fields: str, base: str = "FedAvg") -> Path:
    file = folder / f"{name}.py"
    lines = "\n".join(f"    {field}" for field in fields)
    text = MINE.replace("NAME", name.title().replace("_", "")).replace("BASE", base)
    file.write_text(text.replace("FIELDS", lines), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("field", "kind", "values"),
    [
        ("x: float = Field(default=0.5, ge=0)", "log_uniform", (0.05, 5.0)),
        ("x: float = Field(default=0.3, gt=0)", "log_uniform", (0.03, 3.0)),
        ("x: float = Field(default=2.0, ge=1)", "log_uniform", (1.0, 20.0)),
        ("x: float = Field(default=0.4, le=1)", "log_uniform", (0.04, 1.0)),
        ("x: float = 0.001", "log_uniform", (0.0001, 0.01)),
        ("x: Annotated[float, Role.BRANCH] = Field(default=0.5, ge=0)", "log_uniform", (0.05, 5.0)),
        ("x: float = Field(default=0.5, ge=0, le=1)", "uniform", (0.0, 1.0)),
        ("x: float = Field(default=0.5, gt=0, lt=1)", "uniform", (0.005, 0.995)),
        ("x: float = Field(default=0.0, ge=-1, le=1)", "uniform", (-1.0, 1.0)),
        ("x: int = Field(default=8, ge=1)", "int", (2, 32)),
        ("x: int = Field(default=2, ge=2)", "int", (2, 8)),
        ("x: int = Field(default=3, ge=0, lt=10)", "int", (0, 9)),
        ("x: bool = True", "choice", (False, True)),
        ('x: Literal["a", "b", "c"] = "b"', "choice", ("a", "b", "c")),
    ],
)
def test_a_field_becomes_a_range(field: str, kind: str, values: tuple[Any, ...], tmp_path: Path) -> None:
    space = load_space(str(written(tmp_path, "mine", field)))
    wide = space.hyperparameters["x"].wide
    assert (wide.kind, wide.values) == (kind, values)


@pytest.mark.parametrize(
    "field",
    [
        "x: float = Field(default=0.0, ge=0)",
        "x: int = 0",
        "x: float | None = None",
        'x: str = "text"',
        "x: tuple[float, ...] = (1.0,)",
        'x: Literal["only"] = "only"',
    ],
)
def test_a_field_without_a_scale_is_left_out(field: str, tmp_path: Path) -> None:
    file = written(tmp_path, "mine", field, "y: float = 1.0")
    assert list(load_space(str(file)).hyperparameters) == ["y"]
    text = write_space(file).read_text(encoding="utf-8")
    assert "# Not searched, since type and default give no range: x.\n" in text


@pytest.mark.parametrize(
    ("field", "default", "values"),
    [
        ("y: float = 1.0", 0.01, (0.0001, 1.0)),
        ("optimiser: Optimiser | None = SGD(lr=0.02)", 0.02, (0.0001, 1.0)),
        ("optimiser: Optimiser | None = Adam(lr=1e-3)", 0.001, (0.00001, 0.1)),
        ("optimiser: Optimiser | None = SGD(lr=3.0)", 3.0, (0.0001, 30.0)),
    ],
)
def test_the_rate_is_that_of_the_optimiser(
    field: str, default: float, values: tuple[float, float], tmp_path: Path
) -> None:
    rate = load_space(str(written(tmp_path, "mine", field))).training["optimiser.lr"]
    assert (rate.default, rate.wide.values) == (default, values)


def test_a_method_of_one_round_has_no_rate(tmp_path: Path) -> None:
    file = written(tmp_path, "mine", "y: float = 1.0", base="OneRound")
    assert load_space(str(file)).training == {}


def test_a_value_that_the_method_refuses_is_one_sentence(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "mine",
        "x: float = 1.0",
        "def model_post_init(self, context):",
        "    if self.x > 5: raise ValueError('x is at most 5')",
    )
    with pytest.raises(UserError) as caught:
        load_space(str(file))
    text = str(caught.value)
    assert "search space derived from the fields of mine: x is at most 5; write mine.yaml beside" in text
    assert "\n" not in text


def test_a_written_space_is_the_derived_one_until_it_is_changed(tmp_path: Path) -> None:
    fields = ["a: float = 1e-5", "b: int = 4", "c: bool = False", 'd: Literal["x", "on"] = "on"']
    mine = written(tmp_path, "mine", *fields)
    derived = load_space(str(mine))
    assert note_on_derivation(str(mine)).startswith(
        "derived from the fields of mine; write it down with `bench new"
    )
    file = write_space(mine)
    assert file == tmp_path / "mine.yaml"
    assert load_space(str(mine)) == derived
    assert note_on_derivation(str(mine)) == ""
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("int: [1, 16]", "int: [2, 9]"), encoding="utf-8")
    assert load_space(str(mine)).hyperparameters["b"].wide.values == (2, 9)
    with pytest.raises(UserError, match=r"mine\.yaml is already there"):
        write_space(mine)


def test_only_the_file_of_a_method_gets_a_space() -> None:
    with pytest.raises(UserError, match="'fedprox' is not the file of a method"):
        write_space(Path("fedprox"))
    with pytest.raises(UserError, match=r"no file nobody\.py"):
        write_space(Path("nobody.py"))


def test_the_description_says_that_a_space_is_derived(tmp_path: Path) -> None:
    name = METHODS.resolve(str(written(tmp_path, "mine", "x: float = Field(default=0.5, ge=0)")))
    for method in (name, f"dp+{name}"):
        found = search_space(method, "wide", plan_cells(suite(method))[0].config, {})
        assert "x 0.05–5.0 log" in describe(found)
        assert "; derived from the fields of mine; write it down with" in describe(found)
    assert "derived" not in describe(
        search_space("fedavg", "wide", plan_cells(suite("fedavg"))[0].config, {})
    )
