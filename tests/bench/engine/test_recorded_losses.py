"""Losses in the records: on the test sets, and the terms of the clients' training loss."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from bench.contract.fixtures import tiny_problem
from bench.engine.cell import CellRun
from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.conditions import Conditions
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.records.cell_folder import CellFolder
from bench.records.reader import CellRecord, Run
from bench.records.schema import SuiteRecord, TableRecord
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from bench.tracking.view import round_points
from methods.base import FedAlgorithm
from methods.feddyn import FedDyn
from methods.fedlsa import FedLSA
from methods.fedmix import FedMix
from methods.fedprox import FedProx
from methods.fedrep import FedRep
from methods.moon import Moon
from methods.scaffold import Scaffold
from reports.frames import curves
from tests.kit.cli import TINY, write_suite


def problem(method: FedAlgorithm, recorded: bool = True, **how: Any) -> Problem:
    made = tiny_problem(method, "mlp", **how)
    return replace(made, task=replace(made.task, records_losses=recorded))


def second_round(method: FedAlgorithm, kind: type[Host]) -> dict[str, Any]:
    made = problem(method)
    federation = Federation(made, kind(made))
    federation.advance()
    return federation.advance()


METHODS = [FedProx(mu=0.5), FedDyn(), Scaffold(), Moon(), FedLSA(server_steps=2), FedMix(), FedRep()]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.label)
def test_the_terms_of_a_loss_are_the_same_in_a_loop_and_in_a_stack(method: FedAlgorithm) -> None:
    loop, stacked = (second_round(method, kind)["loss_terms"] for kind in (LoopHost, StackedHost))
    assert stacked == pytest.approx(loop, abs=1e-5)
    assert loop["loss"] > 0
    if isinstance(method, (FedProx, FedDyn, Scaffold, Moon, FedLSA)):
        named = sum(value for name, value in loop.items() if name != "loss")
        assert len(loop) > 2 and named == pytest.approx(loop["loss"], rel=1e-5)


def test_terms_are_means_over_real_steps_and_then_over_clients() -> None:
    """With one step per client and round, a loss is that of the initial model on all of a client's data."""
    made = problem(FedProx(mu=0.5), batch_size=16, epochs=1)
    record = Federation(made, StackedHost(made)).advance()
    losses = [F.cross_entropy(made.task.logits(made.task.initial, x), y) for x, y in made.train.values()]
    expected = float(torch.stack(losses).mean())
    assert record["loss_terms"] == pytest.approx(
        {"cross_entropy": expected, "proximal": 0.0, "loss": expected}, abs=1e-6
    )


@pytest.mark.parametrize("method", [FedProx(), FedRep()], ids=["global model", "clients' models"])
def test_the_test_loss_is_the_mean_cross_entropy_on_each_domain(method: FedAlgorithm) -> None:
    made = problem(method)
    host = LoopHost(made)
    federation = Federation(made, host)
    federation.advance()
    scores = federation.evaluate(personal=False)
    states = [None] if method.has_global_model else [host.state(client) for client in made.train]
    for domain, (x, y) in made.test.items():
        losses = [F.cross_entropy(method.predict(made.task, federation.server, s, x), y) for s in states]
        assert scores["test_loss"][domain] == pytest.approx(float(torch.stack(losses).mean()), rel=1e-5)


@pytest.mark.parametrize("kind", [LoopHost, StackedHost])
def test_recording_losses_changes_nothing_else(kind: type[Host]) -> None:
    ends = []
    for recorded in (False, True):
        made = problem(Moon(), recorded)
        federation = Federation(made, kind(made))
        lines = [federation.advance() | federation.evaluate(personal=False) for _ in range(2)]
        for line in lines:
            found = [line.pop(key, None) is not None for key in ("loss_terms", "test_loss")]
            assert found == [recorded, recorded]
        ends.append(lines)
    assert ends[0] == ends[1]


def test_records_frames_and_mlflow_have_the_losses(tmp_path: Path) -> None:
    file = write_suite(
        tmp_path,
        training=TINY["training"] | {"rounds": 2},
        evaluation={"every": 1, "losses": True},
        methods=[{"name": "fedlsa", "set": {"server_steps": 2}}],
        seeds=1,
    )
    (cell,) = plan_cells(load_suite(str(file)))
    folder = CellFolder(tmp_path / "cell")
    run = CellRun(folder, cell.config, Conditions())
    while not run.done:
        run.advance()
    lines = [json.loads(line) for line in folder.rounds_file.read_text().splitlines()]
    assert list(lines[-1]["test_loss"]) == list(lines[-1]["test"])
    assert list(lines[-1]["loss_terms"]) == ["cross_entropy", "compactness", "loss"]
    metrics = lines[-1]["metrics"]
    whole = metrics["anchor_classification"] + 0.4 * metrics["anchor_separation"]
    assert metrics["anchor_loss"] == pytest.approx(whole)
    domains = tuple(lines[-1]["test"])
    points = {point.metric: point.value for point in round_points(folder.rounds(), 0)}
    assert points["loss_terms.loss"] == lines[-1]["loss_terms"]["loss"]
    assert points[f"test_loss_{domains[0]}"] == lines[-1]["test_loss"][domains[0]]
    record = CellRecord(
        cell.cell_id, "fedlsa", "FedLSA", "", 0, cell.config, folder.rounds(), folder.result(), None
    )
    suite, layout = SuiteRecord(name="tiny", version=1), TableRecord(kind="domains")
    last = curves(Run((tmp_path,), suite, layout, domains, (record,))).iloc[-1]
    assert last["loss_terms.compactness"] == lines[-1]["loss_terms"]["compactness"]
    assert last[f"test_loss.{domains[0]}"] == lines[-1]["test_loss"][domains[0]]
