"""Count what a newcomer has to learn: lines, named types, nouns on the path of a stacked round, options.

    python scripts/count_concepts.py [ROOT]

Counts the tree at ROOT (default: this one), so that two versions can be compared. The nouns are counted by
running: two cells train one round as a stack, and every class of the project counts that is named in a
function which runs meanwhile, or whose method runs.
"""

import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeGuard

PACKAGES = ("bench", "methods", "reports", "search_spaces")
BACK_HALF = ("bench/engine", "methods/core", "methods/fast")
"""Where named types are counted; folders that a version does not have count as empty."""
DECIDES = ("bench/engine", "methods")
"""Where an `except Exception` would decide how something is computed."""
REQUESTS = (
    *("RunRequest", "TuneRequest", "StudyRequest", "Request"),
    *("ComputingRequest", "SuiteRequest", "CellOptions", "SearchOptions"),
)


def sources(root: Path, *folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for file in sorted((root / folder).rglob("*.py")):
            yield file, ast.parse(file.read_text(encoding="utf-8"))


def package_lines(root: Path) -> int:
    files = [file for package in PACKAGES for file in (root / package).rglob("*.py")]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def named_types(root: Path) -> Counter[str]:
    """Classes, aliases and type variables at the top of a module, by folder."""
    found: Counter[str] = Counter()
    for folder in BACK_HALF:
        for _, tree in sources(root, folder):
            found[folder] += sum(map(_is_named_type, tree.body))
    return found


def _is_named_type(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return "TypeAlias" in ast.unparse(node.annotation)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) == "TypeVar"
    return isinstance(node, ast.ClassDef)


def deciding_exceptions(root: Path) -> list[str]:
    """Handlers of every exception after which something else is computed, not recorded or raised."""
    found = []
    for file, tree in sources(root, *DECIDES):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ExceptHandler)
                and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
                and not _only_passes_on(node)
            ):
                found.append(f"{file.relative_to(root)}:{node.lineno}")
    return found


def _only_passes_on(handler: ast.ExceptHandler) -> bool:
    """Whether the error is raised, returned or kept in the end."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise) or handler.name is None:
        return isinstance(last, ast.Raise)
    if isinstance(last, ast.Return):
        return last.value is not None and handler.name in ast.unparse(last.value)
    return isinstance(last, ast.Assign) and ast.unparse(last.value) == handler.name


def declared_options(root: Path) -> Counter[str]:
    """How often an option of `run`, `tune` or `study` is written down: as a field or as a parameter."""
    fields: Counter[str] = Counter()
    parameters: Counter[str] = Counter()
    for _, tree in sources(root, "bench"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name in REQUESTS:
                names = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
                fields.update(name.id for name in names if isinstance(name, ast.Name))
    for _, tree in sources(root, "bench/cli", "bench/api"):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in ("run", "tune", "study"):
                parameters.update(each.arg for each in (*node.args.args, *node.args.kwonlyargs))
    return Counter({name: fields[name] + parameters[name] for name in fields})


def nouns_of_a_stacked_round(root: Path) -> list[str]:
    """In a process of its own, which imports the tree at ROOT."""
    command = [sys.executable, str(Path(__file__).resolve()), "--nouns"]
    done = subprocess.run(command, cwd=root, env=_environment(root), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout.split()


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(root)}


def print_nouns() -> None:
    from bench.engine.cell_stack import CellStack
    from bench.engine.conditions import Conditions
    from bench.records.cell_folder import CellFolder
    from bench.suite.loading import load_suite
    from bench.suite.planning import plan_cells
    from bench.suite.rows import with_rows

    folder = Path(tempfile.mkdtemp())
    suite = with_rows(load_suite("quickstart"), ["fedprox"]).model_copy(update={"seeds": 1})
    changes = {
        "training.rounds": 3,  # the last round would write the result, too
        "fedprox.optimiser": {"name": "sgd", "lr": 0.1},
    }
    cells = [cell for mu in (0.01, 0.1) for cell in plan_cells(suite.changed({**changes, "fedprox.mu": mu}))]
    places = [(CellFolder(folder / cell.cell_id), cell.config) for cell in cells]
    stack = CellStack(places, Conditions(executor="stacked"))
    stack.advance()  # the first round makes what later ones use
    seen: set[type] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_globals.get("__name__", "").startswith(PACKAGES):
            return
        named = [frame.f_globals.get(name) for name in frame.f_code.co_names]
        owner = frame.f_locals.get("self")
        seen.update(each for each in (*named, type(owner)) if _is_own_class(each))

    sys.setprofile(note)
    stack.advance()
    sys.setprofile(None)
    print("\n".join(sorted({each.__name__ for each in seen})))


def _is_own_class(candidate: Any) -> TypeGuard[type]:
    return isinstance(candidate, type) and candidate.__module__.split(".")[0] in PACKAGES


def main() -> None:
    if sys.argv[1:] == ["--nouns"]:
        print_nouns()
        return
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    types, options = named_types(root), declared_options(root)
    deciding, nouns = deciding_exceptions(root), nouns_of_a_stacked_round(root)
    more_than_once = sorted(name for name, count in options.items() if count > 1)
    print(f"package lines                       {package_lines(root)}")
    print(f"classes and aliases in the back     {types.total()}  ({dict(types)})")
    print(f"nouns on the path of a stacked round {len(nouns)}  ({', '.join(nouns)})")
    print(f"`except Exception` that decides     {len(deciding)}  ({', '.join(deciding)})")
    print(f"options of run, tune and study      {len(options)}, written {options.total()} times")
    print(f"  more than once: {', '.join(more_than_once) or 'none'}")


if __name__ == "__main__":
    main()
