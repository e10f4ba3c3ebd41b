"""The rooms of the house: imports go in one direction, and what must stay light stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.places import REPOSITORY

FOUNDATIONS = {"errors", "observer", "registry", "request", "text", "validation"}
ORDER = [
    FOUNDATIONS,
    {"config"},
    {"records"},
    {"data"},
    {"startup", "user_code"},
    {"models", "encoders"},
    {"suite"},
    {"engine"},
    {"contract", "speed", "tracking", "cluster"},
    {"trials"},
    {"runs", "search"},
    {"studies", "results", "method_pages"},
    {"api"},
    {"cli", "__init__", "__main__"},
]
"""The rooms of `bench` from the ground up: a room imports from its own level and from those below it."""
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}

METHODS = [{"fast"}, {"core"}, {"modules"}, {"base"}, {"shared"}, {"wrappers"}]
"""Packages of `methods`, from the ground up; the methods themselves may use all but the wrappers."""

FRAMEWORK = ("core", "fast")
CLOSER_TO_THE_FRAMEWORK = (
    "methods.base",
    "methods.wrappers.base",
    "methods.wrappers.ggeur",
)
"""Not examples for authors: the interface itself, what forwards all of it, and GGEUR, which
makes its samples when clients come to them."""
UNTIL_A_METHOD_IS_LOADED = "torch until a method is loaded"
"""A statement that only an import can test: see `test_what_comes_first_is_light`."""
TERMINALS = ("bench.cli", "click", "rich", "typer")
MEANING = {
    "the command line": TERMINALS,
    "terminals": TERMINALS,
    "tables": ("reports.report", "reports.tables"),
    "training": ("bench.engine", "methods", "torch"),
    "suite files": (
        "bench.suite.loading",
        "bench.suite.model",
        "bench.suite.planning",
        "bench.suite.yaml_files",
    ),
    "single methods": tuple(
        f"methods.{file.stem}"
        for file in (REPOSITORY / "methods").iterdir()
        if file.name not in ("__init__.py", "__pycache__", "core", "fast", "modules")
    ),
    "Ray": ("ray",),
    "Ray Tune": ("ray.air", "ray.train", "ray.tune"),
    "torch": ("torch",),
    "`bench`": ("bench",),
    "`methods`": ("methods",),
}
"""Modules that somebody imports who knows of what ARCHITECTURE.md says they know nothing of."""

FOR_REPORTS = ("bench.config", "bench.errors", "bench.records", "bench.suite.loading", "bench.text")


def modules(package: str) -> list[Path]:
    return sorted((REPOSITORY / package).rglob("*.py"))


def _for_types(tree: ast.Module) -> set[int]:
    """Nodes that only type checkers read."""
    return {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }


def imports(file: Path, package: str) -> Iterator[str]:
    """The modules of a package that a file imports, wherever in the file; not for type checking alone."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for_types = _for_types(tree)
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == package:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == package)


def imported_names(file: Path) -> Iterator[str]:
    """All that a file imports, as `module.name` where it takes a name from a module."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for_types = _for_types(tree)
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def rooms_and_what_they_do_not_know() -> list[tuple[list[str], str]]:
    """The rows of the table in ARCHITECTURE.md: paths of the rooms, and the last column."""
    text = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| knows nothing of |\n|---|---|---|\n")[2].partition("\n\n")[0]
    rows = []
    for line in table.splitlines():
        rooms, _, unknown = line.strip("|").split("|")
        paths = [name.rstrip("/") for name in re.findall(r"`([^`]+)`", rooms)]
        rows.append(
            ([path if (REPOSITORY / path).exists() else f"bench/{path}" for path in paths], unknown.strip())
        )
    return rows


def statements() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Room, what it knows nothing of, and the modules that this means."""
    above: list[str] = []
    for rooms, unknown in rooms_and_what_they_do_not_know():
        for room in rooms:
            for what in filter(None, unknown.split(", ")):
                if what == "everything above":
                    yield room, what, tuple(each.removesuffix(".py").replace("/", ".") for each in above)
                elif what != UNTIL_A_METHOD_IS_LOADED:
                    assert what in MEANING, f"say in MEANING what it is to know nothing of '{what}'"
                    yield room, what, MEANING[what]
        above += rooms


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(REPOSITORY).with_suffix("").parts)


def test_bench_imports_downwards() -> None:
    upward = []
    for file in modules("bench"):
        room = room_of(module_name(file))
        assert room in LEVEL, f"say in ORDER where the room '{room}' stands"
        for name in imports(file, "bench"):
            if LEVEL[room_of(name)] > LEVEL[room]:
                upward.append(f"{module_name(file)} imports {name}")
    assert upward == []


def test_no_two_rooms_of_one_level_import_each_other() -> None:
    edges = {
        (room_of(module_name(file)), room_of(name))
        for file in modules("bench")
        for name in imports(file, "bench")
    }
    both = {frozenset(edge) for edge in edges if edge[0] != edge[1] and edge[::-1] in edges}
    assert both == set()


def test_methods_import_nothing_else_of_the_project() -> None:
    others = ("bench", "reports", "search_spaces", "tests")
    found = [
        f"{module_name(file)} imports {name}"
        for file in modules("methods")
        for package in others
        for name in imports(file, package)
    ]
    assert found == []


def test_packages_of_methods_import_downwards() -> None:
    level = {room: number for number, rooms in enumerate(METHODS) for room in rooms}
    of_methods = level["shared"] + 1
    upward = [
        f"{module_name(file)} imports {name}"
        for file in modules("methods")
        for name in imports(file, "methods")
        if level.get(room_of(name), of_methods) > level.get(room_of(module_name(file)), of_methods)
    ]
    assert upward == []


def test_methods_import_only_what_authors_must_know() -> None:
    """All of it is in `methods.base`; `core` and `fast` are for those who work on the framework."""
    found = []
    for file in modules("methods"):
        module = module_name(file)
        if room_of(module) in (*FRAMEWORK, "modules") or module.startswith(CLOSER_TO_THE_FRAMEWORK):
            continue
        used = [name for name in imports(file, "methods") if room_of(name) in FRAMEWORK]
        found += [f"{module} imports {name}" for name in used]
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found += [
            f"{module} uses {ast.unparse(node)}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("task.mode", "task.computed")
        ]
    assert found == []


def test_reports_need_only_the_records() -> None:
    found = [
        f"{module_name(file)} imports {name}"
        for file in modules("reports")
        for package in ("bench", "methods", "torch", "ray", "mlflow")
        for name in imports(file, package)
        if not name.startswith(FOR_REPORTS)
    ]
    assert found == []


@pytest.mark.parametrize(("room", "what", "unknown"), statements())
def test_rooms_know_nothing_of(room: str, what: str, unknown: tuple[str, ...]) -> None:
    files = modules(room) if (REPOSITORY / room).is_dir() else [REPOSITORY / room]
    assert files
    allowed = FOR_REPORTS if room == "reports" else ()
    found = [
        f"{module_name(file)} imports {name}"
        for file in files
        for name in imported_names(file)
        if f"{name}.".startswith(tuple(f"{each}." for each in unknown)) and not name.startswith(allowed)
    ]
    assert found == []


def test_the_table_of_rooms_is_complete() -> None:
    listed = {path for rooms, _ in rooms_and_what_they_do_not_know() for path in rooms}
    packages = {
        f"bench/{file.name}"
        for file in (REPOSITORY / "bench").iterdir()
        if not file.name.startswith("__") and file.suffix in ("", ".py")
    }
    assert listed - {"methods", "reports", "search_spaces"} == packages


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("bench", {"torch", "ray", "mlflow", "numpy", "pandas", "matplotlib", "optuna"}),
        ("bench.suite.planning, bench.suite.overrides", {"torch", "ray", "mlflow", "optuna"}),
        ("bench.runs.request", {"torch", "ray", "mlflow", "optuna"}),
        ("bench.search.request", {"torch", "ray", "mlflow", "optuna"}),
        ("bench.results.request", {"torch", "ray", "mlflow", "numpy"}),
        ("bench.data.request, bench.engine.export_request", {"torch", "ray", "mlflow", "numpy"}),
    ],
)
def test_what_comes_first_is_light(module: str, heavy: set[str]) -> None:
    code = f"import sys, {module}; print(sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
