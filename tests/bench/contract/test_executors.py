"""In whatever way clients are run or a run is continued, every registered method comes to the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from bench.engine.conditions import Conditions
from bench.engine.checkpoints import load_state
from bench.engine.federation import Federation
from bench.engine.hosts import stacked
from bench.engine.hosts.base import Host
from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from bench.engine.problem import Problem
from bench.suite.methods import METHODS
from kit.cli import wait_until
from kit.contract import (
    PLAIN,
    after,
    assert_close,
    differing,
    every_method,
    in_one_process,
    make_method,
    resumed,
    run,
    standing,
    tiny_problem,
    with_only,
)
from kit.contract_cells import NEED_CLIP, KeptActors, accepted_cell_model, assembled, cell_config
from methods.core.optimisers import SGD, Adam, Optimiser

if TYPE_CHECKING:
    from bench.engine.hosts.ray import RayHosts

on_ray = pytest.mark.xdist_group("ray")

MOMENTUM = SGD(lr=0.02, momentum=0.9, weight_decay=0.01, clip_norm=1.0)
ADAM = Adam(lr=0.003, epsilon=1e-3)  # a small epsilon makes whole steps of gradients that are but rounding


# The executors agree


@every_method
@pytest.mark.parametrize(
    ("model", "optimiser"),
    [
        pytest.param("mlp", PLAIN, id="mlp"),
        pytest.param("mlp", MOMENTUM, id="mlp-momentum"),
        pytest.param("mlp", ADAM, id="mlp-adam"),
        pytest.param("cnn", PLAIN, id="cnn"),
        pytest.param("cnn", MOMENTUM, id="cnn-momentum"),
        pytest.param("head", PLAIN, id="head"),
        pytest.param("vit", PLAIN, id="vit"),
        pytest.param("vit", ADAM, id="vit-adam"),
    ],
)
def test_stacked_clients_get_what_they_get_in_order(name: str, model: str, optimiser: Optimiser) -> None:
    assert_stacked_as_in_order(tiny_problem(make_method(name), model, optimiser=optimiser))


@pytest.mark.parametrize("name", [name for name in METHODS.names() if METHODS.load(name).own_model])
@pytest.mark.parametrize("optimiser", [PLAIN, MOMENTUM, ADAM], ids=["plain", "momentum", "adam"])
def test_so_do_stacked_clients_with_a_model_of_the_method(name: str, optimiser: Optimiser) -> None:
    assert_stacked_as_in_order(tiny_problem(make_method(name), optimiser=optimiser))


def assert_stacked_as_in_order(problem: Problem) -> None:
    loop, stacked = LoopHost(problem), StackedHost(problem)
    assert_close(
        standing(run(problem, loop, rounds=3, participation=0.7), loop),
        standing(run(problem, stacked, rounds=3, participation=0.7), stacked),
        tolerance=1e-5,
    )


@every_method
@pytest.mark.parametrize("optimiser", [PLAIN, MOMENTUM], ids=["plain", "momentum"])
def test_padding_changes_nothing(name: str, optimiser: Optimiser) -> None:
    """A client's stacked result does not depend on whom it is stacked with."""
    sizes = (7, 140, 5, 6)  # the second needs more than one piece of `Batches.once`, and far more steps
    problem = tiny_problem(make_method(name), sizes=sizes, batch_size=16, optimiser=optimiser)
    if problem.method.pools_data:
        pytest.skip("has one client only")
    task, exchanges = problem.task, problem.exchanges()
    last = len(exchanges) - 1
    sequence = [*((at, 0) for at in range(last)), (last, 1), (last, 2)]
    servers = [problem.method.server(task)]
    everyone = LoopHost(problem)
    for at, number in sequence:
        messages = [(client, exchanges[at].down(task, servers[-1], client)) for client in problem.train]
        servers.append(after(exchanges[at], task, servers[-1], everyone.run(at, number, messages)))

    def result_beside(others: list[int]) -> dict[str, Any]:
        host = StackedHost(with_only(problem, [0, *others]))
        for (at, number), server in zip(sequence, servers[:-1], strict=True):
            messages = [(client, exchanges[at].down(task, server, client)) for client in [0, *others]]
            replies = host.run(at, number, messages)
        return {"reply": replies[0].content, "private": host.state(0)}

    alone = result_beside([])
    for others in ([1], [2, 3]):
        assert_close(alone, result_beside(others), tolerance=1e-6)


@every_method
def test_a_stack_too_large_for_the_cache_is_trained_in_parts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = tiny_problem(make_method(name), optimiser=MOMENTUM)
    ends = []
    for floats in (2**30, 1):
        monkeypatch.setattr(stacked, "CACHED_FLOATS", floats)
        host = StackedHost(problem)
        ends.append(standing(run(problem, host, rounds=2, participation=0.7), host))
    assert_close(*ends, tolerance=1e-6)


@pytest.mark.parametrize(
    ("count", "most", "sizes"), [(10, 4, [3, 4, 3]), (4, 4, [4]), (5, 4, [2, 3]), (2, 1, [1, 1])]
)
def test_the_parts_of_a_stack_are_about_equal(count: int, most: int, sizes: list[int]) -> None:
    parts = list(stacked.evenly_cut(list(range(count)), most))
    assert [len(part) for part in parts] == sizes
    assert [item for part in parts for item in part] == list(range(count))


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
    from bench.engine.hosts import ray as hosts_on_ray

    with pytest.MonkeyPatch.context() as patch:
        kept = KeptActors(hosts_on_ray._place)
        patch.setattr(hosts_on_ray, "_place", kept.place)
        yield kept


def real_cell(name: str, model: str, participation: float) -> tuple[Problem, Callable[[], RayHosts]]:
    """The problem of a cell, and its hosts on Ray."""
    from bench.engine.hosts.ray import RayHosts

    config = cell_config(name, model, participation)
    problem = assembled(config).problem
    return problem, lambda: RayHosts(sorted(problem.train), config, TWO_HOSTS)


@on_ray
@every_method
def test_hosts_on_ray_give_the_bits_of_the_loop(name: str, kept_actors: KeptActors, tmp_path: Path) -> None:
    """Without a break; saved by one host and continued by two; and the other way round."""
    if name in NEED_CLIP:
        pytest.skip("needs the weights of a CLIP model")
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
@every_method
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


# Save, load, continue


@every_method
@in_one_process
def test_a_loaded_run_goes_on_as_if_it_had_never_stopped(name: str, kind: type[Host], tmp_path: Path) -> None:
    problem = tiny_problem(make_method(name))
    host = kind(problem)
    federation = run(problem, host, rounds=2, participation=0.7, save_to=tmp_path)
    same_problem = tiny_problem(make_method(name))
    new_host = kind(same_problem)
    new_federation = resumed(same_problem, new_host, tmp_path, rounds=2, participation=0.7)
    for _ in range(2):
        assert new_federation.advance() == federation.advance()
    assert differing(standing(new_federation, new_host), standing(federation, host)) == []
    assert new_federation.evaluate(personal=True) == federation.evaluate(personal=True)
