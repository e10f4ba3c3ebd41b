"""Cells whose models are tested on a domain or on clients that nobody trains on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.engine.assembly import assemble
from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.suite.loading import load_suite
from bench.suite.planning import PlannedCell, plan_cells
from tests.kit.cli import TINY, write_suite

TRAIN, TEST = 20, 10


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))


def cells(folder: Path, **changes: Any) -> list[PlannedCell]:
    """Domains a and b look alike and have class 0; c looks different and has class 1.

    The first feature says which domain a sample is from, the second which sample it is.
    """
    arrays: dict[str, np.ndarray] = {}
    for number, domain in enumerate("abc"):
        for part, size, start in (("train", TRAIN, 0), ("test", TEST, 100)):
            x = np.zeros((size, 4), np.float32)
            x[:, 0] = -1 if domain in "ab" else 1
            x[:, 1] = 0.001 * (1000 * number + start + np.arange(size))
            arrays[f"{domain}/x_{part}"] = x
            arrays[f"{domain}/y_{part}"] = np.full(size, int(domain == "c"))
    np.savez(folder / "abc.npz", allow_pickle=False, **arrays)
    file = write_suite(
        folder,
        **{
            "dataset": {"name": "arrays", "path": str(folder / "abc.npz")},
            "partition": {"name": "by_domain", "clients": 6},
            "methods": ["fedavg"],
            "seeds": 1,
            "training": TINY["training"] | {"rounds": 10, "epochs": 5},
            **changes,
        },
    )
    return plan_cells(load_suite(str(file)))


def which(x: Any) -> set[int]:
    """The samples' numbers: thousands are domains, hundreds the test set."""
    return {round(1000 * float(value)) for value in x[:, 1]}


@pytest.mark.parametrize("method", ["fedavg", "local", "central", "ditto"])
def test_the_unseen_domain_is_tested_and_never_trained_on(tmp_path: Path, method: str) -> None:
    training = TINY["training"] | {"validation": 0.2}
    planned = cells(tmp_path, unseen="domain", methods=[method], training=training)
    for number, cell in enumerate(planned):
        problem = assemble(cell.config).problem
        parts = (*problem.train.values(), *problem.validation.values())
        seen = set().union(*(which(part.x) for part in parts))
        assert {sample // 1000 for sample in seen} == {0, 1, 2} - {number}
        assert len(seen) == 2 * TRAIN
        assert list(problem.test) == ["abc"[number]]
        assert which(problem.test["abc"[number]].x) == {1000 * number + 100 + k for k in range(TEST)}


@pytest.mark.parametrize(("method", "on_a"), [("fedavg", 1.0), ("central", 1.0), ("local", 0.5)])
def test_the_accuracy_is_that_on_the_unseen_domain(tmp_path: Path, method: str, on_a: float) -> None:
    """Without a or b their class is known from the other; class 1 is unknown to all without c.

    Of the local models without a, only the clients of b know class 0: half of them.
    """
    found: dict[str, float] = {}
    for cell in cells(tmp_path, unseen="domain", methods=[method]):
        run = CellRun(CellFolder(tmp_path / cell.directory), cell.config, Conditions(executor="loop"))
        while not run.done:
            run.advance()
        final = json.loads((tmp_path / cell.directory / "result.json").read_text())["final"]
        assert [final["avg"]] == list(final["test"].values())
        found |= final["test"]
    assert found == {"a": on_a, "b": on_a, "c": 0.0}


def test_unseen_clients_never_train_and_their_share_of_the_test_set_is_tested(tmp_path: Path) -> None:
    (cell,) = cells(tmp_path, unseen={"clients": 3})
    problem = assemble(cell.config).problem
    seen = set().union(*(which(part.x) for part in problem.train.values()))
    assert len(problem.train) == 3
    assert len(seen) == 3 * TRAIN / 2
    assert {name: len(part.y) for name, part in problem.test.items()} == dict.fromkeys("abc", TEST)


def test_a_client_with_part_of_the_classes_is_tested_on_those(tmp_path: Path) -> None:
    """Each of three clients has one of three classes."""
    partition = {"name": "shards", "clients": 3, "shards_per_client": 1}
    train = np.zeros((12, 4), np.float32)
    labels = np.repeat([0, 1, 2], 4)
    path = tmp_path / "one.npz"
    np.savez(path, x_train=train, y_train=labels, x_test=train, y_test=labels)
    dataset = {"name": "arrays", "path": str(path)}
    (cell,) = cells(tmp_path, dataset=dataset, partition=partition, unseen={"clients": 1})
    problem = assemble(cell.config).problem
    trained = {int(label) for part in problem.train.values() for label in part.y}
    (tested,) = problem.test.values()
    assert len(trained) == 2
    assert set(tested.y.tolist()) == {0, 1, 2} - trained
    assert len(tested.y) == 4
