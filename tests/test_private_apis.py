"""Private names of libraries: each is used in one file, in a room that allows it, and still does its work.

A release of torch, Ray or Python may change any of them without notice. The tests below say what each is
needed for; a failure names the installed version and the last one that it was seen to work with.
"""

from __future__ import annotations

import ast
import atexit
import importlib.metadata
import inspect
import platform
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from tests.kit.places import REPOSITORY

pytestmark = pytest.mark.xdist_group("ray")

LIBRARIES = ("torch", "ray", "optuna", "mlflow", "pydantic", "threading", "atexit")
FOLDERS = ("bench", "methods", "reports", "search_spaces", "scripts", "examples")
ROOMS = (
    "bench/startup/",
    "bench/cluster/",
    "methods/fast/",
)
"""Where private names may be used; elsewhere, use what these offer."""


class Need(NamedTuple):
    """What private names of a library are needed for."""

    library: str
    works_with: str
    """The newest version that the check was seen to pass with."""
    names: tuple[str, ...]
    purpose: str
    check: Callable[[], None]


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def names_used(tree: ast.Module) -> set[str]:
    """Private names of the libraries with their full path, such as "torch._foreach_add"."""
    known: dict[str, str] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                known[each.asname or each.name.split(".")[0]] = (
                    each.name if each.asname else each.name.split(".")[0]
                )
                found.add(each.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                known[each.asname or each.name] = f"{node.module}.{each.name}"
                found.add(f"{node.module}.{each.name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, *rest = ast.unparse(node).split(".")
            if first in known and all(part.isidentifier() for part in rest):
                found.add(".".join([known[first], *rest]))
    private = {
        name
        for name in found
        if name.split(".")[0] in LIBRARIES and any(_private(part) for part in name.split("."))
    }
    return {name for name in private if not any(other.startswith(f"{name}.") for other in private)}


def _uses() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for file in sorted((REPOSITORY / folder).rglob("*.py")):
            for name in names_used(ast.parse(file.read_text(encoding="utf-8"))):
                yield name, file.relative_to(REPOSITORY).as_posix()


@pytest.fixture(scope="module")
def uses() -> dict[str, list[str]]:
    """For every private name in use, the files that use it."""
    files = defaultdict(list)
    for name, file in _uses():
        files[name].append(file)
    return dict(files)


def test_private_names_are_found_however_they_are_written() -> None:
    code = """
import torch, ray.util
import torch.utils._pytree as pytree
from torch import nn
from ray._private import worker
from ray.util import _private_thing
torch._foreach_add(a, b)
pytree.tree_map(f, a)
nn.modules.conv._ConvNd
worker.print_to_stdstream = None
self._own, other.__class__, torch.__version__, batch._replace(x=1)
"""
    assert names_used(ast.parse(code)) == {
        "torch._foreach_add",
        "torch.utils._pytree.tree_map",
        "torch.nn.modules.conv._ConvNd",
        "ray._private.worker.print_to_stdstream",
        "ray.util._private_thing",
    }


def test_private_names_stay_in_their_rooms(uses: dict[str, list[str]]) -> None:
    stray = {name: files for name, files in uses.items() if not all(file.startswith(ROOMS) for file in files)}
    assert stray == {}


def test_every_private_name_is_used_in_one_file(uses: dict[str, list[str]]) -> None:
    assert {name: files for name, files in uses.items() if len(files) > 1} == {}


def test_every_private_name_has_a_check(uses: dict[str, list[str]]) -> None:
    assert set(uses) == {name for need in NEEDS for name in need.names}


def _lists_of_tensors() -> None:
    from methods.fast import tensor_lists

    def pair() -> list[Tensor]:
        return [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]

    def values(tensors: Any) -> list[float]:
        return [float(value) for tensor in tensors for value in tensor]

    a, b = pair(), pair()
    assert values(tensor_lists.add(a, b, alpha=2)) == [3, 6, 9]
    assert values(tensor_lists.mul(a, 2.0)) == [2, 4, 6]
    tensor_lists.add_(a, b, alpha=2)
    assert values(a) == [3, 6, 9]
    tensor_lists.mul_(a, 2.0)
    assert values(a) == [6, 12, 18]
    tensor_lists.copy_(a, b)
    assert values(a) == values(b)


def _nests() -> None:
    from methods.core.tree import Tree
    from methods.fast.pytrees import tree_map

    tree = Tree({"w": torch.ones(2, 3)})
    assert tree_map(lambda leaf: leaf + 1, {"a": tree})["a"]["w"].sum() == 12
    assert torch.func.vmap(lambda each: each * 2)(tree)["w"].sum() == 12


def _out_of_vmap() -> None:
    """Two levels; inside them all clients and cells are one tensor, which a plain operation changes."""
    from methods.fast.vmap_levels import AVAILABLE, in_stack, levels_of, one_of, outside, present, stack_of

    assert AVAILABLE
    seen: list[tuple[Any, ...]] = []

    def inner(x: Tensor, y: Tensor) -> Tensor:
        levels = present()
        seen.append((tuple(levels.values()), in_stack(x), len(levels_of(x)), len(levels_of(y))))
        with outside():
            whole = stack_of(x)
            seen.append(tuple(whole.shape))
            doubled = whole * 2
        return one_of(doubled, levels)

    x, y = torch.arange(24.0).view(2, 3, 4), torch.zeros(2, 4)
    result = torch.func.vmap(lambda x, y: torch.func.vmap(inner, in_dims=(0, None))(x, y))(x, y)
    assert torch.equal(result, 2 * x)
    assert seen == [((2, 3), True, 2, 1), (2, 3, 4)]


def _ends_of_processes() -> None:
    """In the order of Python itself: threads end, then exit handlers run, then nothing else does."""
    assert callable(threading._shutdown) and callable(atexit._run_exitfuncs)  # type: ignore[attr-defined]
    code = """
import atexit, os, threading, time
atexit.register(print, "handler", flush=True)
threading.Thread(target=lambda: (time.sleep(0.2), print("thread", flush=True))).start()
threading._shutdown()
atexit._run_exitfuncs()
os._exit(3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "thread\nhandler\n")


def _what_nodes_print() -> None:
    from ray._private import worker

    assert "print_to_stdstream" in worker.listen_error_messages.__code__.co_names


def _lost_processes() -> None:
    from ray.air.execution._internal import RayActorManager
    from ray.tune.execution import tune_controller

    parameters = inspect.signature(RayActorManager._actor_task_failed).parameters
    assert list(parameters) == ["self", "tracked_actor_task", "exception"]
    assert tune_controller.RayActorManager is RayActorManager
    assert "RayActorManager" in tune_controller.TuneController.__init__.__code__.co_names


def _statistics_of_trials() -> None:
    from ray.tune.experiment import Trial

    trial = Trial("any", stub=True)
    trial.update_last_result({"training_iteration": 1, "score": 1.0})
    assert trial.metric_analysis and trial.metric_n_steps
    trial.metric_analysis.clear()
    trial.metric_n_steps.clear()
    trial.run_metadata.invalidate_cache()


def _running_instances() -> None:
    import ray

    from bench.cluster.ray_instances import Access, RayInstance, ask

    instance = RayInstance(ray.get_runtime_context().gcs_address, Access.PRIVATE)
    assert instance in ask()
    assert ask(instance.address) == [instance]


NEEDS = [
    Need(
        "torch",
        "2.15.0",
        tuple(f"torch._foreach_{name}" for name in ("add", "add_", "mul", "mul_", "copy_")),
        "steps of optimisers and sums of trees in one call per list of tensors",
        _lists_of_tensors,
    ),
    Need(
        "torch",
        "2.15.0",
        ("torch.utils._pytree.register_pytree_node", "torch.utils._pytree.tree_map"),
        "trees of parameters as arguments and results of vmap",
        _nests,
    ),
    Need(
        "torch",
        "2.15.0",
        (
            *(
                f"torch._C._functorch.{name}"
                for name in (
                    "_add_batch_dim",
                    "get_unwrapped",
                    "is_batchedtensor",
                    "is_functorch_wrapped_tensor",
                    "maybe_current_level",
                    "maybe_get_bdim",
                    "maybe_get_level",
                )
            ),
            "torch._functorch.pyfunctorch.VmapInterpreter",
            "torch._functorch.pyfunctorch.retrieve_all_functorch_interpreters",
            "torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack",
        ),
        "operations on a whole stack from inside vmap",
        _out_of_vmap,
    ),
    Need(
        "python",
        "3.11.7",
        ("threading._shutdown", "atexit._run_exitfuncs"),
        "commands that end without freeing what they imported",
        _ends_of_processes,
    ),
    Need(
        "ray",
        "2.60.0",
        ("ray._private.worker.print_to_stdstream",),
        "silence about what Ray's nodes publish",
        _what_nodes_print,
    ),
    Need(
        "ray",
        "2.60.0",
        ("ray.air.execution._internal.RayActorManager",),
        "trials that are tried again whatever their processes are lost by",
        _lost_processes,
    ),
    Need("ray", "2.60.0", (), "trials whose statistics are let go when they end", _statistics_of_trials),
    Need(
        "ray",
        "2.60.0",
        (
            "ray._common.usage.usage_lib.get_cluster_metadata",
            "ray._private.authentication.authentication_token_setup.ensure_token_if_auth_enabled",
            "ray._private.authentication.authentication_token_setup.maybe_enable_token_auth_if_token_available",
            "ray._private.services.find_gcs_addresses",
            "ray._raylet.GcsClient",
        ),
        "telling clusters from Ray that a program started for itself",
        _running_instances,
    ),
]


def _installed(library: str) -> str:
    return platform.python_version() if library == "python" else importlib.metadata.version(library)


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.purpose)
def test_private_names_do_what_they_are_needed_for(need: Need, ray_session: None) -> None:
    try:
        need.check()
    except Exception as error:
        changed = ", ".join(need.names) or "its internals"
        pytest.fail(
            f"{need.library} {_installed(need.library)} changed {changed}, needed for {need.purpose}; "
            f"last seen to work with {need.works_with}: {type(error).__name__}: {error}"
        )
