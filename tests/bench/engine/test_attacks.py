"""Attackers: who they are, what they send, and that no executor changes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from bench.config.cell import Attackers
from bench.engine.assembly import assemble
from bench.engine.attacks import Attack
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.suite.model import Suite
from bench.suite.planning import plan_cells
from bench.validation import validated
from methods.base import Reply
from methods.shared.vectors import flattened
from tests.kit.cli import TINY
from tests.kit.contract import assert_close, make_method, tiny_problem

FLIP = {"kind": "sign_flip", "share": 0.3, "scale": 2.0}


def suite(**changes: Any) -> Suite:
    return validated(Suite, TINY | changes, "suite file tiny.yaml")


def attacked(name: str, kind: str, scale: float = 2.0, **how: Any) -> Problem:
    return replace(tiny_problem(make_method(name), **how), attack=Attack(kind, scale, frozenset({1})))


# Configuration


def test_a_suite_without_the_key_has_the_cells_it_had() -> None:
    plain, with_attackers = (plan_cells(each)[0].config for each in (suite(), suite(attackers=FLIP)))
    assert "attackers" not in plain.as_record()
    assert with_attackers.as_record()["attackers"] == FLIP
    assert with_attackers.cell_id != plain.cell_id
    assert with_attackers.setting != plain.setting


def test_it_can_be_set_whole_or_key_by_key() -> None:
    changed = suite().changed({"attackers": FLIP}).changed({"attackers.share": 0.1})
    assert changed.attackers == Attackers(kind="sign_flip", share=0.1, scale=2.0)


@pytest.mark.parametrize(
    ("attackers", "said"),
    [
        ({"kind": "label_flip", "share": 0.3, "scale": 2.0}, "flipped labels have no scale"),
        ({"kind": "sleep", "share": 0.3}, "attackers.kind"),
        ({"kind": "noise", "share": 1.0}, "attackers.share"),
    ],
)
def test_what_makes_no_sense_is_refused(attackers: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        suite(attackers=attackers)


# Who they are


def test_the_seed_draws_them() -> None:
    drawn = [Attack.drawn(Attackers(kind="noise", share=0.3), 10, seed) for seed in (0, 0, 1, 2)]
    clients = [attack.clients for attack in drawn if attack]
    assert [len(each) for each in clients] == [3, 3, 3, 3]
    assert clients[0] == clients[1]
    assert len(set(clients)) > 1


def test_there_is_at_least_one_but_none_where_one_client_has_all_data() -> None:
    few = Attackers(kind="noise", share=0.01)
    assert len(attack.clients) == 1 if (attack := Attack.drawn(few, 10, 0)) else False
    assert Attack.drawn(few, 1, 0) is None


# What they do


def round_of(problem: Problem) -> tuple[Federation, dict[str, Any], list[Any]]:
    """A federation after a round, its record, and the models that honest clients would have sent."""
    task = problem.task
    honest = LoopHost(problem).run(0, 1, [(client, {"model": task.initial}) for client in problem.train])
    federation = Federation(problem, LoopHost(problem))
    record = federation.advance()
    return federation, record, [flattened(reply.content["model"]).double() for reply in honest]


def test_flipped_signs_turn_the_update_around() -> None:
    problem = attacked("fedavg", "sign_flip")
    federation, record, models = round_of(problem)
    x = flattened(problem.task.initial).double()
    models[1] = x - 2 * (models[1] - x)
    expected = np.average(torch.stack(models), axis=0, weights=[7, 12, 5])
    np.testing.assert_allclose(flattened(federation.server["model"]), expected, atol=1e-6)
    assert (record["attackers"], record["dropped"]) == (1, 0)


def test_what_the_server_does_not_send_is_turned_around_too() -> None:
    task = tiny_problem(make_method("scaffold")).task
    content: dict[str, Any] = {
        "model": task.initial,
        "control_change": task.initial.only(task.trainable),
        "n": torch.tensor(3),
    }
    message = {"model": task.initial}
    attack = Attack("sign_flip", 3.0, frozenset({0}))
    (forged,) = attack.on(task, 1, {0: message}, [Reply(0, 5, content)])
    assert_close(forged.content["control_change"], -3.0 * content["control_change"], tolerance=1e-7)
    assert_close(forged.content["model"], task.initial, tolerance=1e-7)
    assert int(forged.content["n"]) == 3


def test_noise_has_the_stated_size_and_changes_with_the_round() -> None:
    problem = attacked("fedavg", "noise", scale=0.5)
    task, attack = problem.task, problem.attack
    assert attack is not None
    sent = [
        flattened(
            attack.on(task, number, {1: {}}, [Reply(1, 5, {"model": task.initial})])[0].content["model"]
        )
        for number in (1, 2)
    ]
    noise = torch.stack(sent) - flattened(task.initial)
    assert float(noise.std()) == pytest.approx(0.5, rel=0.15)
    assert not torch.equal(*noise)


@pytest.mark.parametrize("kind", ["sign_flip", "noise"])
def test_executors_agree(kind: str) -> None:
    problem = attacked("fedavg", kind)
    ends = []
    for host in (LoopHost(problem), StackedHost(problem)):
        federation = Federation(problem, host, participation=0.7)
        for _ in range(2):
            federation.advance()
        ends.append(federation.server)
    assert_close(*ends, tolerance=1e-5)


def test_labels_are_flipped_for_training_alone() -> None:
    plain, poisoned = (
        plan_cells(each)[0].config
        for each in (suite(), suite(attackers={"kind": "label_flip", "share": 0.3}))
    )
    honest, false = (assemble(config).problem for config in (plain, poisoned))
    assert false.attack is not None
    for client, samples in honest.train.items():
        y = 9 - samples.y if client in false.attack.clients else samples.y
        assert torch.equal(false.train[client].y, y)
        assert torch.equal(false.train[client].x, samples.x)
    some = sorted(honest.train)[:1]
    on_a_host = assemble(poisoned, clients=some).problem.train
    assert all(torch.equal(on_a_host[client].y, false.train[client].y) for client in some)
    assert all(torch.equal(honest.test[name].y, false.test[name].y) for name in honest.test)


def test_exchanges_before_round_1_are_honest() -> None:
    problem = attacked("ggeur+fedavg", "sign_flip")
    federation = Federation(problem, LoopHost(problem))
    assert "attackers" not in federation.prelude()
    assert federation.advance()["attackers"] == 1


def test_robust_rules_survive_where_the_average_does_not() -> None:
    """Two of seven clients turn their updates around, tenfold."""
    attack = Attack("sign_flip", 10.0, frozenset({1, 4}))
    right = {}
    for name, attacks in (("fedavg", None), ("fedavg", attack), ("robust+fedavg", attack)):
        problem = replace(tiny_problem(make_method(name), sizes=(8,) * 7), attack=attacks)
        federation = Federation(problem, LoopHost(problem))
        for _ in range(6):
            federation.advance()
        right[name, attacks] = np.mean(list(federation.evaluate(personal=False)["test"].values()))
    assert right["fedavg", attack] < 0.5 < 0.95 * right["fedavg", None] < right["robust+fedavg", attack]
