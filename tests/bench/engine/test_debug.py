"""The executor `debug` computes what `loop` does, and keeps the arguments of a client's work that fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import bench
from bench.contract.nests import differing
from bench.contract.runs import run, standing
from bench.engine.cell import CellRun
from bench.engine.clients.debug import DebugHost
from bench.engine.clients.loop import LoopHost
from bench.engine.conditions import Conditions
from bench.engine.executors import cells_at_once
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.suite.methods import METHODS
from methods.base import Batch, Batches, FedAlgorithm, Loss, Message, Prelude, State, Task, Tree
from methods.fedavg import FedAvg
from methods.shared.preludes import Upload
from tests.kit.contract import make_method, tiny_problem, with_infinite_inputs
from tests.kit.contract_cells import cell_config


class FailsLate(FedAvg):
    """Counts a client's rounds, and fails in its second one."""

    label = "FailsLate"

    def client(self, task: Task) -> State:
        return {"rounds": torch.zeros(())}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        if client["rounds"] > 0:
            raise RuntimeError(f"{len(list(batches))} steps are too many")
        return reply, {"rounds": client["rounds"] + 1}


class Roots(FedAvg):
    """The slope of a square root at 0 is infinite, and 0 · ∞ is NaN."""

    label = "Roots"

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)

        def loss(params: Tree, batch: Batch) -> Tensor:
            return plain(params, batch) + 0 * (params - params).sqnorm().sqrt()

        return loss


class FailsBefore(FedAvg):
    """Its exchange before round 1 fails."""

    label = "FailsBefore"

    def prelude(self, task: Task) -> Prelude:
        return [FailingUpload()]


class FailingUpload(Upload):
    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        raise RuntimeError(f"{len(batches.all().y)} samples are too many")

    def aggregate(self, task: Task, server: State, replies: Any) -> State:
        return server


@pytest.mark.parametrize("name", ["fedavg", "scaffold", "fedmix", "per_fedavg", "ggeur+fedavg"])
def test_results_are_those_of_the_loop(name: str) -> None:
    problem = tiny_problem(make_method(name))
    ends = []
    for kind in (LoopHost, DebugHost):
        host = kind(problem)
        ends.append(standing(run(problem, host, rounds=2, participation=0.7), host))
    assert differing(*ends) == []
    assert cells_at_once(problem, "debug") == (1, "the executor debug computes one cell at a time")


def test_the_operation_whose_gradient_is_nan_is_named() -> None:
    problem = tiny_problem(Roots(), "mlp")
    assert run(problem, LoopHost(problem), rounds=1).advance()["dropped"] == 3
    with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"):
        error = raised_by(DebugHost(problem), problem)
    assert "SqrtBackward0" in str(error)
    assert error.__notes__ == ["this was the work of client 0 in round 1"]


def test_tensors_that_are_not_finite_are_named() -> None:
    problem = with_infinite_inputs(tiny_problem(Spoils(), "mlp"), client=1)
    error = raised_by(DebugHost(problem), problem)
    assert isinstance(error, FloatingPointError)
    assert str(error) == "NaN or infinity in reply.largest, state.seen.largest"
    assert error.__notes__ == ["this was the work of client 1 in round 1"]


class Spoils(FedAvg):
    """Trains on zeros, and sends and keeps the largest of its inputs."""

    label = "Spoils"

    def client(self, task: Task) -> State:
        return {"seen": {"largest": torch.zeros(())}}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        return lambda params, batch: plain(params, batch.with_inputs(torch.zeros_like(batch.x)))

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        largest = batches.all().x.max()
        return reply | {"largest": largest}, {"seen": {"largest": largest}}


def raised_by(host: DebugHost, problem: Any) -> Exception:
    with pytest.raises(Exception) as caught:
        run(problem, host, rounds=1)
    return caught.value


class FailedCell(NamedTuple):
    folder: CellFolder
    cell_id: str
    problem: Problem
    error: Exception


def failed_cell(root: Path, kind: type[FedAlgorithm]) -> FailedCell:
    """A cell of the method, run until it fails, with its failure recorded as a process would."""
    config = cell_config("fedavg", "mlp")
    name = METHODS.resolve(kind)
    own = {"name": name, "source": METHODS.source_digest(name)}
    config = config.model_copy(update={"method": config.method.model_copy(update=own)})
    folder = CellFolder(root / "contract" / "cells" / f"failing-{config.cell_id}")
    running = CellRun(folder, config, Conditions(executor="debug"))
    with pytest.raises(RuntimeError) as caught:
        while True:
            running.advance()
    folder.fail(caught.value)
    return FailedCell(folder, config.cell_id, running.assembled.problem, caught.value)


def test_the_work_that_failed_can_be_called_again(tmp_path: Path) -> None:
    cell = failed_cell(tmp_path, FailsLate)
    failed = bench.load_failure(cell.cell_id[:8], root=tmp_path)
    assert (failed.client, failed.round, failed.exchange) == (0, 2, failed.method)
    with pytest.raises(RuntimeError, match="too many") as again:
        failed.method.local(*failed.arguments)
    assert str(again.value) == str(cell.error)


def test_the_arguments_are_those_that_failed(tmp_path: Path) -> None:
    cell = failed_cell(tmp_path, FailsLate)
    task, client, message, batches = bench.load_failure(cell.folder.path).arguments
    alike = replace(cell.problem, method=FedAvg())
    assert differing(message, {"model": run(alike, LoopHost(alike), rounds=1).server["model"]}) == []
    assert float(client["rounds"]) == 1
    assert differing(task.initial, cell.problem.task.initial) == []
    expected = LoopHost(cell.problem).arguments(0, 2, 0, message, cell.problem.train[0])[-1]
    assert all(torch.equal(one.x, other.x) for one, other in zip(batches, expected, strict=True))


def test_the_recorded_reason_says_how_to_call_it_again(tmp_path: Path) -> None:
    cell = failed_cell(tmp_path, FailsLate)
    reason = json.loads((cell.folder.path / "error.json").read_text())["error"]
    assert reason.startswith(f"RuntimeError: {cell.error} (test_debug.py, line ")
    assert reason.endswith(
        "; this was the work of client 0 in round 2; to call it again in a debugger: failed = "
        f"bench.load_failure('{cell.cell_id}'), then failed.exchange.local(*failed.arguments)"
    )
    cell.folder.forget_failure()
    assert not cell.folder.failed_arguments.exists()


def test_so_can_work_before_the_first_round(tmp_path: Path) -> None:
    cell = failed_cell(tmp_path, FailsBefore)
    failed = bench.load_failure(cell.folder.path)
    assert failed.round == 0 and isinstance(failed.exchange, FailingUpload)
    with pytest.raises(RuntimeError, match="too many") as again:
        failed.exchange.local(*failed.arguments)
    assert str(again.value) == str(cell.error)


def test_a_method_that_is_not_installed_has_to_be_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = failed_cell(tmp_path, FailsLate)
    monkeypatch.setattr(METHODS, "_own", {})  # as in another process
    with pytest.raises(UserError, match=r"'fails_late' is not installed; .* method='./fails_late.py'"):
        bench.load_failure(cell.folder.path)
    assert bench.load_failure(cell.folder.path, method=FailsLate).round == 2


def test_a_cell_that_kept_nothing_says_so(tmp_path: Path) -> None:
    config = cell_config("fedavg", "mlp")
    folder = CellFolder(tmp_path / "cell")
    folder.open(config)
    with pytest.raises(UserError, match="has kept no arguments; run the suite with --executor debug"):
        bench.load_failure(folder.path)
