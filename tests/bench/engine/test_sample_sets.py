"""Cells whose methods make samples of their own are trained as one stack: as if each had run alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
import torch
from pydantic import Field
from torch import Generator, Tensor

from bench.contract.runs import prepared
from bench.engine.cell_stack import CellStack
from bench.engine.clients.stacked import StackedHost
from bench.engine.conditions import Conditions
from bench.engine.stacking import joint
from bench.engine.stacking.joint import JointRounds
from bench.records.cell_folder import CellFolder
from bench.suite.methods import METHODS
from bench.suite.planning import PlannedCell
from methods.base import Role, Samples, State, Task
from methods.fedprox import FedProx
from methods.wrappers.ggeur import GGEUR
from methods.wrappers.ggeur.lazy_samples import LazySamples
from tests.kit.cell_stacks import (
    ROUNDS,
    Choosy,
    alone,
    assert_same,
    cells_of,
    count_joint_calls,
    placed,
    records,
    run_together,
)
from tests.kit.contract import make_method, tiny_problem

MADE = {"step1_samples": 20, "step2_samples": 10}
SETTINGS: list[dict[str, Any]] = [
    {**MADE},
    {**MADE, "step1_samples": 33, "noise_scale": "linear"},
    {**MADE, "step2_samples": 14, "top_k": 2},
    {**MADE, "top_k": 3, "ridge": 0.01, "min_class_count": 3},
]
"""Settings of GGEUR that differ in samples alone."""
MANY = {"step1_samples": 800, "step2_samples": 800}
"""8 MiB per client, which are not copied."""
CLIENTS = 4
STEPS = {"rounds": ROUNDS, "steps": 5, "batch_size": 16, "optimiser": {"name": "sgd", "lr": 0.05}}


def row(name: str, rate: float, settings: dict[str, Any], **of_inner: float) -> dict[str, Any]:
    changes = {
        **settings,
        "optimiser": {"name": "sgd", "lr": rate},
        **({"inner": of_inner} if of_inner else {}),
    }
    return {"name": name, "label": str(changes), "set": changes}


def rows(name: str, settings: Sequence[dict[str, Any]] = SETTINGS) -> list[dict[str, Any]]:
    return [row(name, 0.05 + 0.02 * number, each) for number, each in enumerate(settings)]


def with_steps(folder: Path, given: list[Any], **sections: Any) -> list[PlannedCell]:
    """Cells on embeddings, whose clients take as many steps whatever they train on."""
    given_sections = {"training": STEPS, "model": {"name": "head"}, "encoder": "pixels", **sections}
    return cells_of(folder, given, **given_sections)


@pytest.fixture
def joint_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return count_joint_calls(monkeypatch)


def assert_as_alone(folder: Path, cells: list[PlannedCell], calls: list[int]) -> None:
    """Runs them alone, then together; afterwards `calls` has those of the stack."""
    alone(folder / "alone", cells)
    calls.clear()
    assert run_together(folder / "stack", cells).failed == {}
    for cell in cells:
        assert_same(records(folder / "stack", cell), records(folder / "alone", cell))


@pytest.mark.parametrize("inner", ["fedavg", "fedprox", "scaffold", "feddyn"])
def test_cells_with_other_samples_are_one_stack(tmp_path: Path, joint_calls: list[int], inner: str) -> None:
    cells = with_steps(tmp_path, rows(f"ggeur+{inner}"))
    assert_as_alone(tmp_path, cells, joint_calls)
    assert joint_calls == [len(SETTINGS)] * ROUNDS
    assert len({str(records(tmp_path / "stack", cell)["rounds"]) for cell in cells}) == len(SETTINGS)


def test_numbers_of_the_method_inside_are_those_of_each_cell(tmp_path: Path, joint_calls: list[int]) -> None:
    given = [
        row("ggeur+fedprox", 0.05, settings, mu=mu)
        for settings, mu in zip(SETTINGS, (0.0, 0.1, 1.0, 3.0), strict=True)
    ]
    assert_as_alone(tmp_path, with_steps(tmp_path, given), joint_calls)
    assert joint_calls == [len(SETTINGS)] * ROUNDS


def test_wrappers_around_the_one_that_makes_samples_are_stacked_too(
    tmp_path: Path, joint_calls: list[int]
) -> None:
    inside = [{"inner": settings} for settings in SETTINGS[:2]]
    assert_as_alone(tmp_path, with_steps(tmp_path, rows("compressed+ggeur+fedavg", inside)), joint_calls)
    assert joint_calls == [2] * ROUNDS


def test_one_domain_is_filled_up_to_other_counts(tmp_path: Path, joint_calls: list[int]) -> None:
    settings = [{"domains": "one", "samples_per_class": count} for count in (15, 25, 40)]
    assert_as_alone(tmp_path, with_steps(tmp_path, rows("ggeur+fedavg", settings)), joint_calls)
    assert joint_calls == [3] * ROUNDS


def test_samples_that_are_made_anew_stay_with_their_cell(tmp_path: Path, joint_calls: list[int]) -> None:
    settings = [{**each, "resample": "epoch"} for each in SETTINGS[:2]] + SETTINGS[2:]
    assert_as_alone(tmp_path, with_steps(tmp_path, rows("ggeur+fedavg", settings)), joint_calls)
    assert sorted(joint_calls) == [1] * 2 * ROUNDS + [2] * ROUNDS


@pytest.fixture
def made_late(monkeypatch: pytest.MonkeyPatch) -> dict[LazySamples, int]:
    """Samples that are made when clients come to them → how many of them were made, from now on."""
    made: dict[LazySamples, int] = {}
    real = LazySamples.places

    def counted(self: LazySamples, indices: Tensor) -> Tensor:
        found = real(self, indices)
        made[self] = max(made.get(self, 0), 1 + int(found.max()))
        return found

    monkeypatch.setattr(LazySamples, "places", counted)
    return made


@pytest.mark.parametrize("inner", ["fedavg", "fedga", "fedala"])
def test_large_samples_are_taken_from_where_they_are(
    tmp_path: Path, joint_calls: list[int], made_late: dict[LazySamples, int], inner: str
) -> None:
    """Made at once, or when clients come to them; FedGA asks for positions, FedALA for all samples."""
    made: list[dict[str, Any]] = [{**MANY}, {**MANY, "top_k": 2}, {**MANY, "ridge": 0.01}]
    given = [row(f"ggeur+{inner}", 0.01, settings) for settings in made]
    cells = with_steps(tmp_path, given, training={**STEPS, "rounds": 2})
    alone(tmp_path / "alone", cells, executor="loop")
    assert run_together(tmp_path / "stack", cells).failed == {}
    assert joint_calls == [3] * 2
    assert len(made_late) == 2 * CLIENTS, "with a ridge, the noise takes as much memory as the samples"
    for cell in cells:
        assert_same(records(tmp_path / "stack", cell), records(tmp_path / "alone", cell))


def test_samples_that_no_client_comes_to_are_not_made(
    tmp_path: Path, made_late: dict[LazySamples, int]
) -> None:
    (cell,) = with_steps(tmp_path, rows("ggeur+fedavg", [MANY]))
    assert run_together(tmp_path / "stack", [cell]).failed == {}
    assert len(made_late) == CLIENTS
    assert all(count <= ROUNDS * 5 * 16 < len(samples.y) for samples, count in made_late.items())


def test_cells_with_the_same_samples_share_batches(tmp_path: Path, joint_calls: list[int]) -> None:
    even = [row("ggeur+fedprox", 0.05, each, mu=mu) for each in SETTINGS[:2] for mu in (0.1, 0.5)]
    cells = with_steps(tmp_path, even)
    assert_as_alone(tmp_path, cells, joint_calls)
    assert joint_calls == [4] * ROUNDS


def test_many_cells_of_uneven_sets_are_computed_set_by_set(tmp_path: Path, joint_calls: list[int]) -> None:
    uneven = [row("ggeur+fedprox", 0.05, SETTINGS[0], mu=mu) for mu in (0.1, 0.5, 0.9)]
    uneven.append(row("ggeur+fedprox", 0.05, SETTINGS[1], mu=0.1))
    cells = with_steps(tmp_path, uneven)
    assert_as_alone(tmp_path, cells, joint_calls)
    assert sorted(joint_calls) == [1] * ROUNDS + [3] * ROUNDS


def test_samples_are_not_made_again_when_the_cell_that_made_them_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    real = GGEUR.training_samples

    def counted(self: GGEUR, *given: Any) -> Any:
        made.append(1)
        return real(self, *given)

    monkeypatch.setattr(GGEUR, "training_samples", counted)
    cells = with_steps(tmp_path, [row("ggeur+fedprox", 0.05, MADE, mu=mu) for mu in (0.1, 0.5, 0.9)])
    stack = CellStack(placed(tmp_path / "stack", cells), Conditions(executor="stacked"))
    stack.advance()
    of_one_cell = len(stack.running[0].assembled.problem.train)
    stack.leave(stack.running[0])
    while stack.running:
        stack.advance()
    assert len(made) == of_one_cell


def test_cells_that_would_be_mostly_padding_stay_apart(tmp_path: Path, joint_calls: list[int]) -> None:
    settings = [{"step1_samples": 5 * count, "step2_samples": count} for count in (2, 3, 12, 13)]
    cells = cells_of(tmp_path, rows("ggeur+fedavg", settings), model={"name": "head"}, encoder="pixels")
    assert_as_alone(tmp_path, cells, joint_calls)
    assert joint_calls == [2] * 2 * ROUNDS


def test_seeds_with_samples_of_their_own_join_too(tmp_path: Path, joint_calls: list[int]) -> None:
    cells = with_steps(tmp_path, rows("ggeur+fedavg", SETTINGS[:2]), seeds=2)
    assert_as_alone(tmp_path, cells, joint_calls)
    assert joint_calls == [4] * ROUNDS
    assert_as_alone(tmp_path / "uneven", cells[:3], joint_calls)
    assert joint_calls == [3] * ROUNDS


def test_rounds_get_no_more_of_a_state_than_they_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []
    real = StackedHost.seen_in_rounds

    def noted(self: StackedHost, client: int) -> State:
        state = real(self, client)
        seen.append(set(state))
        return state

    monkeypatch.setattr(StackedHost, "seen_in_rounds", noted)
    for name, expected in (("ggeur+fedavg", set()), ("ggeur+scaffold", {"inner"})):
        seen.clear()
        run_together(tmp_path / name, with_steps(tmp_path, rows(name)))
        assert all(each == expected for each in seen)


def test_a_cell_that_diverges_leaves_the_others_alone(tmp_path: Path, joint_calls: list[int]) -> None:
    given = rows("ggeur+fedprox")
    given[1] = row("ggeur+fedprox", 1e30, SETTINGS[1], mu=0.1)
    cells = with_steps(tmp_path, given)
    assert_as_alone(tmp_path, cells, joint_calls)
    assert joint_calls == [len(SETTINGS)] * ROUNDS
    assert CellFolder(tmp_path / "stack" / cells[1].cell_id).rounds()[-1].dropped > 0


def test_a_broken_cell_fails_alone_and_the_others_stay_together(
    tmp_path: Path, joint_calls: list[int]
) -> None:
    name = f"ggeur+{METHODS.resolve(Choosy)}"
    given = [
        row(name, 0.05, settings, shift=shift)
        for settings, shift in zip(SETTINGS, (0.0, 3.0, 0.0, 0.0), strict=True)
    ]
    cells = with_steps(tmp_path, given)
    sound = [cells[0], *cells[2:]]
    alone(tmp_path / "alone", sound)
    joint_calls.clear()
    stack = run_together(tmp_path / "stack", cells)
    assert {folder.path.name: str(error) for folder, error in stack.failed.items()} == {
        cells[1].cell_id: "broken on purpose"
    }
    assert joint_calls.count(3) == ROUNDS
    for cell in sound:
        assert_same(records(tmp_path / "stack", cell), records(tmp_path / "alone", cell))


@pytest.mark.parametrize("inner", ["fedavg", "scaffold"])
def test_a_stack_goes_on_where_a_kill_left_it(tmp_path: Path, joint_calls: list[int], inner: str) -> None:
    cells = with_steps(tmp_path, rows(f"ggeur+{inner}"))
    alone(tmp_path / "alone", cells)
    conditions = Conditions(executor="stacked", checkpoint_seconds=0)
    stack = CellStack(placed(tmp_path / "stack", cells), conditions)
    for _ in range(3):
        stack.advance()
    stack.running[0].advance()  # as if the kill came between two checkpoints
    del stack
    again = CellStack(placed(tmp_path / "stack", cells), conditions)
    assert sorted(cell.rounds_done for cell in again.running) == [3, 3, 3, 4]
    joint_calls.clear()
    while again.running:
        again.advance()
    assert joint_calls == [3, *[4] * (ROUNDS - 4)]  # the one that was ahead joins
    for cell in cells:
        assert_same(records(tmp_path / "stack", cell), records(tmp_path / "alone", cell))


@pytest.mark.parametrize(("times", "together"), [(3, 2), (1.5, 1)])
@pytest.mark.parametrize("name", ["fedavg", "ggeur+fedavg"])
def test_without_room_for_all_samples_cells_are_computed_apart(
    name: str, times: float, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for so many times the samples of a cell."""
    problems = [tiny_problem(make_method(name), seed=seed) for seed in (0, 1)]
    first = StackedHost(problems[0])
    prepared(first.problem, first)

    class SomeRoom(StackedHost):
        room = int(times * sum(first.made(client, number=0).bytes for client in first.problem.train))

    monkeypatch.setattr(joint, "may_have_parts", lambda _: False)
    cells = {host: prepared(host.problem, host) for host in map(SomeRoom, problems)}
    assert not JointRounds().advance({host: each.advancing() for host, each in cells.items()})
    assert [each.stacked_with for each in cells.values()] == [together] * 2


def test_where_batches_come_from_one_place_all_samples_are_copied_there(
    tmp_path: Path, joint_calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint, "may_have_parts", lambda _: False)
    assert_as_alone(tmp_path, with_steps(tmp_path, rows("ggeur+fedavg")), joint_calls)
    assert joint_calls == [len(SETTINGS)] * ROUNDS


class Scaled(FedProx):
    """Makes samples that depend on a number."""

    label = "Scaled"
    scale: Annotated[float, Role.SAMPLES] = Field(default=1.0, gt=0)

    def training_samples(self, task: Task, client: State, own: Samples, draw: Generator) -> Samples:
        noise = torch.randn(own.x.shape, generator=draw)
        return Samples(self.scale * own.x + 0.1 * noise, own.y)

    def resamples(self) -> bool:
        return False


def test_numbers_may_decide_about_samples_and_rounds(tmp_path: Path, joint_calls: list[int]) -> None:
    given = [
        {"name": METHODS.resolve(Scaled), "label": str(scale), "set": {"scale": scale, "mu": scale}}
        for scale in (0.5, 1.0, 1.5)
    ]
    assert_as_alone(tmp_path, with_steps(tmp_path, given), joint_calls)
    assert joint_calls == [3] * ROUNDS
