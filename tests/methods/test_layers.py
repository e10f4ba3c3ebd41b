"""What may import what inside `methods`: core ← modules ← base ← shared ← methods ← wrappers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import methods

ROOT = Path(methods.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
ALLOWED = {
    "core": {"core"},
    "modules": {"core", "modules"},
    "base": {"core"},
    "shared": {"core", "modules", "base", "shared", "fedavg"},
    "method": {"core", "modules", "base", "shared", "method"},
    "wrappers": {"core", "modules", "base", "shared", "method", "wrappers"},
}
"""Layer → what it imports while it runs; imports for type checking alone are free."""


def layer_of(module: str) -> str:
    second = [*module.split("."), ""][1]
    return second if second in ALLOWED else "method"


def imported(file: Path) -> Iterator[str]:
    """The modules that a file imports when it is imported."""
    pending: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None, "import by full name"
            yield node.module
        pending.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_imports_only_from_its_layer_and_those_below(file: Path) -> None:
    own = ".".join(("methods", *file.relative_to(ROOT).with_suffix("").parts))
    for name in imported(file):
        top = name.partition(".")[0]
        assert top not in ("bench", "reports", "search_spaces", "tests"), f"{own} imports {name}"
        if top == "methods":
            allowed = ALLOWED[layer_of(own)]
            assert layer_of(name) in allowed or name.split(".")[1] in allowed, f"{own} imports {name}"


def test_no_file_imports_itself_by_way_of_others() -> None:
    graph = {
        ".".join(("methods", *file.relative_to(ROOT).with_suffix("").parts)): set(imported(file))
        for file in FILES
    }
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join([*path, module])
        if module not in done:
            for other in graph[module] & graph.keys():
                visit(other, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())
