"""Files of `methods` do not import each other in circles; for packages see tests/test_imports.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import methods

ROOT = Path(methods.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


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
