"""`bench watch`: how far a run has come, from its records alone."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import pytest

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.runs.plan import Plan, plan_of
from bench.runs.request import RunRequest
from tests.kit.cli import Outcome, assert_one_sentence, call_bench, files_below, write_suite


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Four cells: one done, one on its way, one failed, one not begun."""
    made = plan_of(RunRequest(str(write_suite(tmp_path)), out=tmp_path / "runs"))
    made.write()
    done, running, failed, _ = made.cells
    advance(made, done.cell_id, 4)
    advance(made, running.cell_id, 2)
    advance(made, failed.cell_id, 1)
    made.folder.cell(failed.directory).fail(RuntimeError("out of \x1b[31mluck"))
    return made


def advance(plan: Plan, cell_id: str, rounds: int) -> None:
    cell = next(cell for cell in plan.cells if cell.cell_id == cell_id)
    run = CellRun(plan.folder.cell(cell.directory), cell.config, Conditions())
    while run.rounds_done < rounds:
        run.advance()
    run.close()


def look(plan: Plan, *more: object) -> Outcome:
    return call_bench("watch", plan.folder.path, *more)


def test_once_tells_how_it_stands_and_writes_nothing(plan: Plan) -> None:
    before = files_below(plan.folder.path)
    outcome = look(plan, "--once")
    assert outcome.code == 3
    lines = outcome.out.splitlines()
    counts = r"1 of 4 cells done, 1 running, 1 failed, 1 waiting; 7 of 16 rounds; about \d+ s left"
    assert re.fullmatch(rf"tiny v1: {counts}", lines[0]), lines
    average = r"AVG \d+\.\d"
    assert re.fullmatch(
        rf"  FedProx seed 0  failed, round 1/4  {average}  RuntimeError: out of \[31mluck", lines[1]
    )
    assert re.fullmatch(rf"  FedAvg seed 1  running, round 2/4  {average}  last round \d+ s ago", lines[2])
    assert len(lines) == 3 and "\x1b" not in outcome.out
    assert files_below(plan.folder.path) == before


def test_a_cell_without_a_new_round_for_long_is_quiet(plan: Plan) -> None:
    folder = plan.folder.cell(plan.cells[1].directory)
    for file in (folder.rounds_file, folder.path):
        os.utime(file, (time.time() - 1000,) * 2)
    outcome = look(plan, "--once")
    assert "1 of 4 cells done, 1 quiet, 1 failed, 1 waiting; 7 of 16 rounds\n" in outcome.out
    assert "last round 16 min 40 s ago" in outcome.out


@pytest.mark.parametrize("screen", [{}, {"FORCE_COLOR": "1"}], ids=["a log", "a screen"])
def test_it_follows_until_all_cells_have_ended(plan: Plan, screen: dict[str, str]) -> None:
    running, failed, waiting = plan.cells[1:]

    def finish() -> None:
        for cell in (failed, running, waiting):
            advance(plan, cell.cell_id, 4)

    worker = threading.Thread(target=finish)
    worker.start()
    outcome = call_bench("watch", plan.folder.path, "--every", "0.05", **screen)
    worker.join()
    assert outcome.code == 0
    assert "tiny v1: 4 of 4 cells done; 16 of 16 rounds" in outcome.out
    assert "FedAvg seed 1" in outcome.out or not screen
    assert look(plan, "--once") == Outcome(0, "tiny v1: 4 of 4 cells done; 16 of 16 rounds\n", "")


def test_a_run_with_failures_ends_with_one(plan: Plan) -> None:
    for cell in (plan.cells[1], plan.cells[3]):
        advance(plan, cell.cell_id, 4)
    outcome = look(plan)
    assert outcome.code == 1 and "3 of 4 cells done, 1 failed" in outcome.out


def test_a_run_is_found_by_its_name_and_mistakes_cost_a_sentence(plan: Plan, tmp_path: Path) -> None:
    assert call_bench("watch", "tiny", "--runs", tmp_path / "runs", "--once").code == 3
    assert_one_sentence(call_bench("watch", tmp_path / "nothing"), "no run", "nothing")
    assert_one_sentence(look(plan, "--every", "0"), "--every 0: must be a number greater than 0")
