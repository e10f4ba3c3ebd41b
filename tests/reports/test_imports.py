"""The packages of reports build on each other in one direction."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import reports

ROOT = Path(reports.__file__).parent
LAYERS = (
    "published",
    "numbers",
    "combine",
    "tables",
    "figures",
    "render",
    "page",
    "frames",
    "report",
    "site",
    "docs",
)


def imported(file: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{file} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("layer", LAYERS)
def test_a_package_imports_only_itself_and_those_before_it(layer: str) -> None:
    below = LAYERS[: LAYERS.index(layer) + 1]
    files = [file for file in ROOT.rglob("*.py") if layer_of(file) == layer]
    assert files
    for file in files:
        for module in imported(file):
            if module.startswith("reports."):
                assert module.split(".")[1] in below, f"{file} imports {module}"


def test_every_module_belongs_to_a_layer() -> None:
    assert {layer_of(file) for file in ROOT.rglob("*.py")} == {*LAYERS, "__init__"}
