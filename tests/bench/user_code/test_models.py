"""Models from a user's own file, function or class: what is built, its identity, and mistakes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from bench.errors import UserError
from bench.models import ModelChoice, from_module, model_spec
from bench.models.base import seeded_model

TEXT = """
from torch import nn

def model(input_shape, classes, width=6):
    (size,) = input_shape
    return nn.Sequential(nn.Linear(size, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, classes))
"""
X = torch.linspace(-1, 1, 10).reshape(2, 5)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "mine.py") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_a_model_from_a_file() -> None:
    spec = model_spec({"name": "file", "path": write(TEXT), "classifier": "3", "options": {"width": 9}})
    model = seeded_model(spec, (5,), 3, seed=0)
    assert (model.feature_size, model.embedding_size) == (9, 9)
    assert model.eval()(X).shape == (2, 3)
    assert model.classifier.weight.shape == (3, 9)
    same, other = (seeded_model(spec, (5,), 3, seed=seed).eval() for seed in (0, 1))
    assert torch.equal(same(X), model(X))
    assert not torch.equal(other(X), model(X))


def test_the_only_class_of_a_file_is_taken() -> None:
    text = """
from torch import nn
class _Helper(nn.Module): ...
class Net(nn.Module):
    def __init__(self, input_shape, classes):
        super().__init__()
        self.fc = nn.Linear(input_shape[0], classes)
    def forward(self, x):
        return self.fc(x)
"""
    model = model_spec({"name": "file", "path": write(text)}).build((5,), 3)
    assert isinstance(model.classifier, nn.Linear)
    assert model.feature_size == 5


def test_an_edited_file_has_another_identity() -> None:
    options = {"name": "file", "path": write(TEXT)}
    before = model_spec(options).model_dump(mode="json")
    assert set(before) == {"path", "digest"}
    assert model_spec(options).model_dump(mode="json") == before
    write(TEXT.replace("width=6", "width=7"))
    after = model_spec(options)
    assert after.model_dump(mode="json") != before
    assert after.build((5,), 3).feature_size == 7
    planned = model_spec({"name": "file", **before})
    assert planned.build((5,), 3).feature_size == 6  # from the copy that was kept when it was planned


def test_a_planned_file_is_found_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = model_spec({"name": "file", "path": write(TEXT)}).model_dump(mode="json")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert model_spec({"name": "file", **planned}).build((5,), 3).feature_size == 6


def test_a_pinned_file_must_have_its_digest() -> None:
    spec = model_spec({"name": "file", "path": write(TEXT), "digest": "0" * 16})
    with pytest.raises(UserError, match=f"not {'0' * 16}: it changed after the run was planned"):
        spec.build((5,), 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", r"mine.py must define a function model\(input_shape, classes\); found none"),
        ("def a(): ...\ndef b(): ...", "found a, b: name one by 'function'"),
        ("def model(:\n", "mine.py, line 1: SyntaxError"),
        ("import no_such_module", r"line 1: ModuleNotFoundError: .*keep the model in one file"),
        ("def model(shape, classes):\n    return 1 / 0", "mine.py, line 2: ZeroDivisionError: division by"),
        ("def model(shape, classes):\n    return 3", "returned a int; it must return an nn.Module"),
        ("def model(shape): ...", "TypeError"),
    ],
)
def test_mistakes_in_a_file_name_the_line(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        model_spec({"name": "file", "path": write(text)}).build((5,), 3)


def test_a_missing_file() -> None:
    with pytest.raises(UserError, match=r"there is no file my.py \(current directory"):
        model_spec({"name": "file", "path": "my.py"})


WIDTH = 8
UNUSED = object()


class _Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.layer = nn.Linear(size, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layer(x))


def own_network(input_shape: tuple[int, ...], classes: int, depth: int = 1) -> nn.Module:
    blocks = [_Block(input_shape[0]), *(_Block(WIDTH) for _ in range(depth - 1))]
    return nn.Sequential(*blocks, nn.Linear(WIDTH, classes))


class OwnClass(_Block):
    def __init__(self, input_shape: tuple[int, ...], classes: int) -> None:
        super().__init__(input_shape[0])
        self.fc = nn.Linear(WIDTH, classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.fc(super().forward(x))
        return logits


@pytest.mark.parametrize("factory", [own_network, OwnClass])
def test_a_function_or_class_as_an_object(factory: type[nn.Module], tmp_path: Path) -> None:
    choice = from_module(factory)
    assert isinstance(choice, ModelChoice) and choice.name == "file"
    assert choice == from_module(factory)
    assert not Path(choice.options["path"]).is_absolute()
    model = seeded_model(model_spec(choice.as_config()), (5,), 3, seed=4)
    with torch.random.fork_rng():
        from methods.core.random import derive

        torch.manual_seed(derive(4, "initial weights"))
        expected = factory((5,), 3)
    assert torch.equal(model(X), expected(X))
    text = (tmp_path / "cache" / choice.options["path"]).read_text()
    assert "WIDTH = 8" in text and "UNUSED" not in text


def test_options_and_parts_of_an_object() -> None:
    choice = from_module(own_network, classifier="2", projector="1", options={"depth": 2})
    model = model_spec(choice.as_config()).build((5,), 3)
    assert model.projector.get_parameter("layer.weight").shape == (8, 8)


def test_what_a_closure_holds_is_copied() -> None:
    width = 11

    def inner(input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(input_shape[0], width), nn.Linear(width, classes))

    assert model_spec(from_module(inner).as_config()).build((5,), 3).feature_size == 11


SCRIPT = """
import torch.nn as nn
from torch import relu
from bench.models import from_module, model_spec

WIDTHS = {"hidden": 7}

class Body(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, WIDTHS["hidden"])

    def forward(self, x):
        return relu(self.layer(x))

def net(input_shape, classes):
    return nn.Sequential(Body(input_shape[0]), nn.Linear(WIDTHS["hidden"], classes))

print(model_spec(from_module(net).as_config()).build((5,), 3).feature_size)
raise SystemExit  # what a copy of the whole script would do
"""


def test_a_model_defined_in_a_script() -> None:
    done = subprocess.run([sys.executable, write(SCRIPT)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "7"), done.stderr


def uses_an_object(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Linear(id(UNUSED), classes)


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (nn.Linear(2, 3), "not a Linear: its weights are drawn again for each seed"),
        (lambda shape, classes: nn.Linear(2, 3), "not a function"),
        (uses_an_object, "'uses_an_object' uses 'UNUSED', an object, which cannot be copied"),
    ],
)
def test_objects_that_cannot_be_taken(thing: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_module(thing)  # type: ignore[arg-type]


def test_bench_models_is_light_to_import() -> None:
    code = "import sys, bench.models; print({'numpy', 'torch', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
