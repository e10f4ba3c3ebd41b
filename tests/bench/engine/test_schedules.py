"""Learning rates over the rounds: against PyTorch's schedulers, and with every executor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from torch.optim import lr_scheduler

from bench.config.schedules import Cosine, Schedule, Step
from bench.config.training import Training
from bench.contract.fixtures import ADAM, tiny_problem
from bench.contract.nests import gaps
from bench.contract.runs import SplitHosts, resumed, run, standing
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.problem import Problem
from methods.base import FedAlgorithm
from methods.core.optimisers import SGD
from methods.fedsdg import FedSDG
from methods.scaffold import Scaffold
from tests.kit.tiny import close

ROUNDS = 12


def by_torch(make: object, rounds: int = ROUNDS) -> list[float]:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = make(optimiser)  # type: ignore[operator]
    rates = []
    for _ in range(rounds):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return rates


@pytest.mark.parametrize(
    ("schedule", "make"),
    [
        (Cosine(), lambda o: lr_scheduler.CosineAnnealingLR(o, ROUNDS)),
        (Cosine(final=0.1), lambda o: lr_scheduler.CosineAnnealingLR(o, ROUNDS, eta_min=0.1)),
        (
            Cosine(warmup=3, final=0.05),
            lambda o: lr_scheduler.SequentialLR(
                o,
                [
                    lr_scheduler.LinearLR(o, start_factor=1 / 4, total_iters=3),
                    lr_scheduler.CosineAnnealingLR(o, ROUNDS - 3, eta_min=0.05),
                ],
                milestones=[3],
            ),
        ),
        (Step(milestones=(4, 9), factor=0.5), lambda o: lr_scheduler.MultiStepLR(o, [4, 9], gamma=0.5)),
    ],
)
def test_rates_are_those_of_pytorchs_schedulers(schedule: Schedule, make: object) -> None:
    ours = [schedule.at(number, ROUNDS) for number in range(1, ROUNDS + 1)]
    assert ours == pytest.approx(by_torch(make), abs=1e-9)


def scheduled(method: FedAlgorithm, model: str, schedule: Schedule | None) -> Problem:
    problem = tiny_problem(method, model, optimiser=ADAM if model == "vit" else SGD(lr=0.1))
    return replace(problem, schedule=schedule, rounds=3)


@pytest.mark.parametrize(
    ("method", "model"), [(Scaffold(), "mlp"), (FedSDG(), "vit")], ids=["scaffold", "fedsdg"]
)
def test_every_executor_follows_the_schedule_and_so_does_a_resumed_run(
    method: FedAlgorithm, model: str, tmp_path: Path
) -> None:
    problem = scheduled(method, model, Cosine(warmup=1, final=0.2))
    loop = LoopHost(problem)
    expected = standing(run(problem, loop, 3), loop)
    split = SplitHosts(problem, lambda: method)
    assert not gaps(expected, standing(run(problem, split, 3), split), 0)
    stacked = StackedHost(problem)
    assert not gaps(expected, standing(run(problem, stacked, 3), stacked), 1e-5)
    run(problem, LoopHost(problem), 2, save_to=tmp_path)
    late = LoopHost(problem)
    continued = resumed(problem, late, tmp_path, 2)
    continued.advance()
    assert not gaps(expected, standing(continued, late), 0)
    plain = scheduled(method, model, None)
    constant = LoopHost(plain)
    assert gaps(expected, standing(run(plain, constant, 3), constant), 1e-5), "the schedule did nothing"


def test_the_rates_of_a_methods_own_groups_follow_the_schedule() -> None:
    """In a round at almost no rate, neither adapters nor gates move."""
    problem = scheduled(FedSDG(), "vit", Step(milestones=(1,), factor=1e-9))
    host = LoopHost(problem)
    after_one = standing(run(problem, host, 1), host)["clients"]
    host = LoopHost(problem)
    after_two = standing(run(problem, host, 2), host)["clients"]
    assert not gaps(after_one, after_two, 1e-7)
    start = {str(client): FedSDG().client(problem.task) for client in problem.train}
    assert gaps(start, after_one, 1e-4)


def test_scaffolds_control_variates_are_gradients_at_every_rate() -> None:
    """After one step of the first round a control variate is the gradient at the initial model."""
    controls = []
    for schedule in (None, Cosine(warmup=3)):
        problem = tiny_problem(Scaffold(), "mlp", epochs=1, batch_size=16)
        problem = replace(problem, schedule=schedule, rounds=5)
        host = LoopHost(problem)
        run(problem, host, 1)
        controls.append([host.state(client)["control"] for client in problem.train])
    for one, other in zip(*controls, strict=True):
        assert close(one, other, tolerance=1e-5)
        assert one.norm() > 0.1


def test_a_constant_rate_is_no_schedule() -> None:
    options = {"rounds": 3, "batch_size": 4, "optimiser": {"name": "sgd", "lr": 0.1}}
    plain = Training.model_validate(options)
    for choice in ("constant", {"name": "constant"}, None):
        assert Training.model_validate(options | {"schedule": choice}) == plain
    assert "schedule" not in plain.model_dump()
    short = Training.model_validate(options | {"schedule": "cosine"})
    assert short.model_dump()["schedule"] == {"name": "cosine"}


@pytest.mark.parametrize(
    "schedule",
    [
        {"name": "cosine", "warmup": 3},
        {"name": "cosine", "final": 1.5},
        {"name": "step"},
        {"name": "step", "milestones": [2, 2]},
        {"name": "step", "milestones": [2], "factor": 0},
        "linear",
    ],
)
def test_schedules_that_make_no_sense_are_refused(schedule: object) -> None:
    with pytest.raises(ValidationError):
        Training.model_validate(
            {"rounds": 3, "batch_size": 4, "optimiser": {"name": "sgd", "lr": 0.1}, "schedule": schedule}
        )
