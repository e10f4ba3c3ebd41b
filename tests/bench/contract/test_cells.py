"""Real cells: the same start for every method, and on Ray the bits of the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from bench.contract.nests import differing
from bench.contract.runs import resumed, run
from bench.engine.checkpoints import load_state
from bench.engine.clients.loop import LoopHost
from bench.engine.conditions import Conditions
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.suite.methods import METHODS
from tests.kit.cli import wait_until
from tests.kit.contract import wrapped
from tests.kit.contract_cells import NEED_CLIP, KeptActors, accepted_cell_model, assembled, cell_config

if TYPE_CHECKING:
    from bench.engine.clients.ray import RayHosts

on_ray = pytest.mark.xdist_group("ray")
DIFFERENT = (
    *("central", "ditto", "fedavg", "fedbn", "fedgen", "fedmix", "fedpac", "fedproto", "local", "moon"),
    *("scaffold", "dp+fedavg"),
)
"""Methods whose clients keep and send different things."""


def on_real_cells() -> list[Any]:
    """Every method that needs no CLIP model; all but a few are long tests.

    The contract holds every method to the same bits on two hosts in one process.
    """
    return [
        name if name in DIFFERENT else pytest.param(name, marks=pytest.mark.long)
        for name in (*METHODS.names(), *wrapped())
        if name not in NEED_CLIP
    ]


# Every method of a seed starts alike


@pytest.mark.parametrize("name", ["scaffold", "fedlora"])
def test_data_and_initial_weights_depend_on_the_seed_alone(name: str) -> None:
    model = accepted_cell_model(name)
    one, other = (assembled(cell_config(each, model)) for each in (name, "fedavg"))
    assert differing(one.problem.task.initial, other.problem.task.initial) == []
    assert one.fingerprints == other.fingerprints
    changed = assembled(cell_config(name, model, seed=1))
    assert changed.fingerprints.initial_weights != one.fingerprints.initial_weights
    assert differing(changed.problem.task.initial, one.problem.task.initial)


# Hosts on Ray


class Ending(NamedTuple):
    records: list[dict[str, Any]]
    standing: dict[str, Any]


def ending(federation: Federation, folder: Path) -> Ending:
    """What a federation comes to in two more rounds."""
    records = [federation.advance() for _ in range(2)]
    folder.mkdir()
    federation.save(folder)
    private = {k: state for file in folder.glob("clients-*.pt") for k, state in load_state(file).items()}
    return Ending(records, {"server": federation.server, "clients": dict(sorted(private.items()))})


def assert_same_ending(one: Ending, other: Ending) -> None:
    assert one.records == other.records
    assert differing(one.standing, other.standing) == []


TWO_HOSTS = Conditions(executor="ray", hosts=2)


@pytest.fixture(scope="module")
def kept_actors(ray_session: None) -> Iterator[KeptActors]:
    from bench.engine.clients import ray as ray_hosts

    with pytest.MonkeyPatch.context() as patch:
        kept = KeptActors(ray_hosts._place)
        patch.setattr(ray_hosts, "_place", kept.place)
        yield kept


def real_cell(name: str, model: str, participation: float) -> tuple[Problem, Callable[[], RayHosts]]:
    """The problem of a cell, and its hosts on Ray."""
    from bench.engine.clients.ray import RayHosts

    config = cell_config(name, model, participation)
    problem = assembled(config).problem
    return problem, lambda: RayHosts(sorted(problem.train), config, TWO_HOSTS)


@on_ray
@pytest.mark.parametrize("name", on_real_cells())
def test_hosts_on_ray_give_the_bits_of_the_loop(name: str, kept_actors: KeptActors, tmp_path: Path) -> None:
    """Without a break; saved by one host and continued by two; and the other way round."""
    problem, ray_hosts = real_cell(name, accepted_cell_model(name), 0.6)
    hosts = ray_hosts()
    loop = run(problem, LoopHost(problem), 1, 0.6, save_to=tmp_path / "saved by loop")
    expected = ending(loop, tmp_path / "loop")
    ray = run(problem, hosts, 1, 0.6, save_to=tmp_path / "saved on Ray")
    assert_same_ending(expected, ending(ray, tmp_path / "Ray"))
    assert ray.evaluate(personal=True) == loop.evaluate(personal=True)
    ray = resumed(problem, hosts, tmp_path / "saved by loop", 1, 0.6)
    assert_same_ending(expected, ending(ray, tmp_path / "loop, then Ray"))
    loop = resumed(problem, LoopHost(problem), tmp_path / "saved on Ray", 1, 0.6)
    assert_same_ending(expected, ending(loop, tmp_path / "Ray, then loop"))


@on_ray
@pytest.mark.parametrize("name", ["fedavg", "moon", "fedproto_avg"])
def test_hosts_on_ray_give_the_bits_of_the_loop_on_a_cnn(
    name: str, kept_actors: KeptActors, tmp_path: Path
) -> None:
    problem, ray_hosts = real_cell(name, "cnn", 1.0)
    expected = ending(run(problem, LoopHost(problem), rounds=1), tmp_path / "loop")
    assert_same_ending(expected, ending(run(problem, ray_hosts(), rounds=1), tmp_path / "Ray"))


@on_ray
def test_closing_hosts_on_ray_ends_their_actors(kept_actors: KeptActors) -> None:
    import ray
    from ray.exceptions import RayActorError

    _, ray_hosts = real_cell("fedavg", "mlp", 1.0)
    ray_hosts().close()

    def has_ended(actor: Any) -> bool:
        try:
            ray.get(actor.ready.remote(), timeout=60)
        except RayActorError:
            return True
        return False

    for actor in kept_actors.forget():
        assert wait_until(partial(has_ended, actor), 60), "Ray takes a moment for it, but no minute"
