"""What holds for every registered method, whatever it computes.

A new method is tested here without a line being written, but for its rows in TRAFFIC and NEUTRAL.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pytest
import torch
from cli_runner import wait_until
from contract_builder import (
    BATCH,
    NEED_CLIP,
    NORM_BATCH,
    PLAIN,
    KeptActors,
    WatchedProblem,
    Work,
    accepted_cell_model,
    accepted_model,
    assert_close,
    cell_config,
    copied,
    differing,
    flat,
    is_all_finite,
    make_method,
    needs_vectors,
    noisy,
    predictions,
    resumed,
    run,
    standing,
    tiny_problem,
    with_infinite_inputs,
    with_only,
)
from torch import Tensor

from bench.cells import Conditions
from bench.engine import stacked
from bench.engine.assembly import Assembled, assemble
from bench.engine.checkpoints import load_state
from bench.engine.federation import Federation
from bench.engine.hosts import Host, LoopHost, Problem
from bench.engine.stacked import StackedHost
from bench.errors import UserError
from bench.methods_registry import METHODS, WRAPPERS
from bench.validation import validated
from methods.base import Batches, FedAlgorithm, Message, Reply, Round, State, Task, Tree
from methods.fedavg import FedAvg
from methods.parts.optimisers import SGD, Adam, Optimiser
from methods.wrappers.base import Wrapper

if TYPE_CHECKING:
    from bench.engine.ray_hosts import RayHosts

INNER = ("fedavg", "scaffold")
"""With and without private state: around these every wrapper is tested."""
every_method = pytest.mark.parametrize(
    "name", [*METHODS.names(), *(f"{wrapper}+{inner}" for wrapper in WRAPPERS.names() for inner in INNER)]
)
in_one_process = pytest.mark.parametrize("kind", [LoopHost, StackedHost])
on_ray = pytest.mark.xdist_group("ray")

MOMENTUM = SGD(lr=0.02, momentum=0.9, weight_decay=0.01, clip_norm=1.0)
ADAM = Adam(lr=0.003, epsilon=1e-3)  # a small epsilon makes whole steps of gradients that are but rounding


# One round


@every_method
@in_one_process
def test_a_round_changes_the_predictions_and_stays_finite(name: str, kind: type[Host]) -> None:
    problem = tiny_problem(make_method(name))
    host = kind(problem)
    federation = run(problem, host, rounds=0)
    before = predictions(federation, host)
    record = federation.advance()
    assert (record["round"], record["clients"], record["dropped"]) == (1, len(problem.train), 0)
    after = predictions(federation, host)
    assert is_all_finite(standing(federation, host))
    assert torch.isfinite(after).all()
    assert not torch.equal(before, after)


@every_method
def test_messages_and_private_state_are_named_tensors(name: str) -> None:
    """Anything else would travel uncounted and could not be stacked."""
    problem = WatchedProblem.of(tiny_problem(make_method(name)))
    run(problem, LoopHost(problem), rounds=2)
    for work in problem.work:
        assert [*foreign(work.message), *foreign(work.reply), *foreign(work.kept)] == []


def foreign(nest: Any) -> list[str]:
    """The types in a nest that are neither tensors nor mappings of them."""
    if isinstance(nest, (dict, Tree)):
        return [each for item in nest.values() for each in foreign(item)]
    return [] if isinstance(nest, Tensor) else [type(nest).__name__]


@every_method
@pytest.mark.parametrize(
    ("model", "batch_size"), [(None, BATCH), ("norm", NORM_BATCH)], ids=["usual", "norm"]
)
def test_nothing_is_edited_in_place(name: str, model: str | None, batch_size: int) -> None:
    problem = WatchedProblem.of(tiny_problem(make_method(name), model, batch_size=batch_size))
    assert edited_in_place(problem, LoopHost(problem)) == []


def edited_in_place(problem: WatchedProblem, host: Host) -> list[str]:
    """What two rounds and an evaluation change in states, messages and data that were there before."""
    federation = run(problem, host, rounds=0)
    held = {"initial": problem.task.initial, "data": data_of(problem), "0": federation.server}
    copies = copied(held)
    for number in ("1", "2"):
        federation.advance()
        held[number] = federation.server
        copies[number] = copied(federation.server)
    federation.evaluate(personal=True)
    return differing(held, copies) + [name for work in problem.work for name in work.edited]


def data_of(problem: Problem) -> dict[str, Any]:
    return {str(client): {"x": x, "y": y} for client, (x, y) in problem.train.items()}


class _InPlace(FedAvg):
    """Averages into the memory of the first reply."""

    label: ClassVar[str] = "In place"

    def round(self, task: Task) -> Round:
        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            for name, leaf in self.average(replies).items():
                replies[0].content["model"][name].copy_(leaf)
            return {"model": replies[0].content["model"]}

        return super().round(task)._replace(aggregate=aggregate)


def test_an_edit_in_place_is_noticed() -> None:
    problem = WatchedProblem.of(tiny_problem(_InPlace()))
    assert edited_in_place(problem, LoopHost(problem))


@every_method
def test_batch_norm_is_averaged_but_for_its_counter(name: str) -> None:
    method = serves_a_model(make_method(name))
    if makes_samples(method):
        pytest.skip("makes samples of its own")
    problem = WatchedProblem.of(tiny_problem(method, "norm", batch_size=NORM_BATCH))
    model = served(run(problem, LoopHost(problem), rounds=1).server)["model"]
    sizes = [len(y) if unwrapped(method).weighting == "samples" else 1 for _, y in problem.train.values()]
    for buffer in ("encoder.1.running_mean", "encoder.1.running_var"):
        replies = [work.copies["reply"] for work in problem.work[-len(problem.train) :]]
        sent = [reply["model"][buffer].double().numpy() for reply in replies]
        np.testing.assert_allclose(model[buffer], np.average(sent, axis=0, weights=sizes), atol=1e-6)
    assert model["encoder.1.num_batches_tracked"].dtype == torch.int64


class _WithPrelude(FedAvg):
    """Before round 1 the clients send their largest input, a single number; then they count their steps."""

    label: ClassVar[str] = "With prelude"

    def client(self, task: Task) -> State:
        return {"steps": torch.tensor(0), "share": torch.tensor(0.0)}

    def prelude(self, task: Task) -> list[Round]:
        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            largest = torch.stack([batch.x.max() for batch in batches.once()]).max()
            return {"largest": largest}, client | {"share": largest / 2}

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            return server | {"largest": torch.stack([reply.content["largest"] for reply in replies])}

        return [Round(lambda server, client_id: {}, local, aggregate)]

    def round(self, task: Task) -> Round:
        base = super().round(task)

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            reply, _ = base.local(client, message, batches)
            return reply, client | {"steps": client["steps"] + batches.steps}

        return base._replace(local=local)


@in_one_process
def test_a_prelude_comes_first_with_all_clients_and_single_numbers_can_travel(kind: type[Host]) -> None:
    problem = tiny_problem(_WithPrelude())
    host = kind(problem)
    federation = Federation(problem, host, participation=0.7)
    record = federation.prelude()
    assert record == {"round": 0, "bytes_up": 3 * 4, "bytes_down": 0, "clients": 3, "dropped": 0}
    largest = [float(x.max()) for x, _ in problem.train.values()]
    assert federation.server["largest"].tolist() == largest
    federation.advance()
    steps = {0: 2 * 2, 1: 2 * 3, 2: 2 * 2}  # epochs × batches of four
    for client in problem.train:
        took = steps[client] if client in federation.participants(1) else 0
        assert int(host.state(client)["steps"]) == took
        assert float(host.state(client)["share"]) == largest[client] / 2


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
    phases = problem.phases(problem.task)
    last = len(phases) - 1
    exchanges = [*((at, 0) for at in range(last)), (last, 1), (last, 2)]
    servers = [problem.method.server(problem.task)]
    everyone = LoopHost(problem)
    for at, number in exchanges:
        messages = [(client, phases[at].down(servers[-1], client)) for client in problem.train]
        servers.append(phases[at].aggregate(servers[-1], everyone.run(at, number, messages)))

    def result_beside(others: list[int]) -> dict[str, Any]:
        host = StackedHost(with_only(problem, [0, *others]))
        for (at, number), server in zip(exchanges, servers[:-1], strict=True):
            messages = [(client, phases[at].down(server, client)) for client in [0, *others]]
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
    from bench.engine import ray_hosts

    with pytest.MonkeyPatch.context() as patch:
        kept = KeptActors(ray_hosts._place)
        patch.setattr(ray_hosts, "_place", kept.place)
        yield kept


def real_cell(name: str, model: str, participation: float) -> tuple[Problem, Callable[[], RayHosts]]:
    """The problem of a cell, and its hosts on Ray."""
    from bench.engine.ray_hosts import RayHosts

    config = cell_config(name, model, participation)
    problem = assembled(config).problem
    return problem, lambda: RayHosts(sorted(problem.train), config, TWO_HOSTS)


def assembled(config: dict[str, Any]) -> Assembled:
    try:
        return assemble(config)
    except UserError as refusal:
        pytest.skip(str(refusal))


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


# Bytes


class Traffic(NamedTuple):
    """Bytes of all clients together."""

    up: tuple[int, int]
    """In the first and the second round."""
    down: tuple[int, int]
    prelude: tuple[int, int] = (0, 0)
    """Up and down."""


FLOAT = 4
MODEL = 3 * FLOAT * (6 * 8 + 8 + 8 * 3 + 3)  # the tiny MLP, for three clients
CLASSES = 3 * FLOAT * 3  # a number for every class
MEANS = 3 * FLOAT * 3 * 8  # a point in the space of features for every class
CHANNELS = 3 * FLOAT * 8  # a number for every feature
AVERAGED = FLOAT * (1 + 2 + 1) * (6 + 3)  # means of five samples out of 7, 12 and 5, with their labels
ADAPTER = 3 * FLOAT * 2 * (6 * 6 + 6)
PROMPTS = (
    3
    * FLOAT
    * sum(
        (
            2 * 8,  # queries
            2 * 8 + 2 * 6 + 2 * 8,  # three norms: of the queries, the names and what was seen
            8 * 8 + 2 * 8 * 6 + 3 * 8 + 8 * 8 + 8,  # attention: what queries and names become, and its output
            8 * 32 + 32 + 32 * 8 + 8,  # two linear layers
        )
    )
)
"""FedCLIP's and FedTPG's trained parts, of the tiny stand-ins for a CLIP model."""
GENERATOR = 3 * (FLOAT * (256 * (32 + 3) + 256 + 8 * 256 + 8) + 8) + CLASSES  # a counter and label shares
BODY = 3 * FLOAT * (6 * 8 + 8)  # the tiny MLP without its classifier
# The tiny transformer: two blocks with branches of rank 2 on 8 → 8 and 16 → 8, and the head.
ADAPTERS = 3 * FLOAT * (2 * 2 * (8 + 8 + 16 + 8) + 8 * 3 + 3)

MODEL_BOTH_WAYS = Traffic(up=(MODEL, MODEL), down=(MODEL, MODEL))
GEOMETRY = (
    8 * (8 + 8 + 6 * 8 + 6 * 6 * 8) + 3 * 8,
    3 * (3 * 6 * 4 + 3 * 6 * 6 * 4 + 3),
)
"""Up: 3 + 3 + 2 classes with number, count, mean and covariance, and 3 counts of withheld classes.
Down: eigenvalues, eigenvectors, and a flag a class."""
NOTHING = Traffic(up=(0, 0), down=(0, 0))
TRAFFIC = {
    "central": NOTHING,
    "ditto": MODEL_BOTH_WAYS,
    "fedadagrad": MODEL_BOTH_WAYS,
    "fedadam": MODEL_BOTH_WAYS,
    "fedavg": MODEL_BOTH_WAYS,
    "fedavgm": MODEL_BOTH_WAYS,
    "fedclip": Traffic(up=(ADAPTER, ADAPTER), down=(ADAPTER, ADAPTER)),
    "feddyn": MODEL_BOTH_WAYS,
    "fedfa": Traffic(up=(MODEL + CHANNELS, MODEL + CHANNELS), down=(MODEL + CHANNELS, MODEL + CHANNELS)),
    "fedgen": Traffic(up=(MODEL + CLASSES, MODEL + CLASSES), down=(MODEL, MODEL + GENERATOR)),
    "fedlora": Traffic(up=(ADAPTERS, ADAPTERS), down=(ADAPTERS, ADAPTERS)),
    "fedlsa": Traffic(up=(MODEL, MODEL), down=(MODEL + MEANS, MODEL + MEANS)),
    "fedmix": MODEL_BOTH_WAYS._replace(prelude=(AVERAGED, 3 * AVERAGED)),
    "fedntd": MODEL_BOTH_WAYS,
    "fedproto": Traffic(up=(MEANS + CLASSES, MEANS + CLASSES), down=(0, MEANS + CLASSES)),
    "fedproto_avg": Traffic(
        up=(MODEL + MEANS + CLASSES, MODEL + MEANS + CLASSES), down=(MODEL, MODEL + MEANS + CLASSES)
    ),
    "fedprox": MODEL_BOTH_WAYS,
    "fedtpg": Traffic(up=(PROMPTS, PROMPTS), down=(PROMPTS, PROMPTS)),
    "fedrep": Traffic(up=(BODY, BODY), down=(BODY, BODY)),
    "fedsdg": Traffic(up=(ADAPTERS, ADAPTERS), down=(ADAPTERS, ADAPTERS)),
    "fedyogi": MODEL_BOTH_WAYS,
    "ggeur+fedavg": MODEL_BOTH_WAYS._replace(prelude=GEOMETRY),
    "ggeur+scaffold": Traffic(up=(2 * MODEL, 2 * MODEL), down=(2 * MODEL, 2 * MODEL), prelude=GEOMETRY),
    "local": NOTHING,
    "moon": MODEL_BOTH_WAYS,
    "scaffold": Traffic(up=(2 * MODEL, 2 * MODEL), down=(2 * MODEL, 2 * MODEL)),
}
"""Worked out by hand from what the paper sends, for three clients with the first tiny model it accepts."""


@every_method
@in_one_process
def test_bytes_are_those_worked_out_by_hand(name: str, kind: type[Host]) -> None:
    assert name in TRAFFIC, f"work out by hand what '{name}' sends and add it to TRAFFIC in {__file__}"
    problem = tiny_problem(make_method(name))
    federation = Federation(problem, kind(problem))
    prelude = federation.prelude()
    first, second = federation.advance(), federation.advance()
    counted = Traffic(
        up=(first["bytes_up"], second["bytes_up"]),
        down=(first["bytes_down"], second["bytes_down"]),
        prelude=(prelude["bytes_up"], prelude["bytes_down"]),
    )
    assert counted == TRAFFIC[name]


# Private state stays private

KEPT_AS_SENT = {"moon": {"model"}}
"""Entries of a reply that the client, by the paper's design, also keeps: they are no secret."""


@every_method
def test_private_state_is_not_in_a_reply(name: str) -> None:
    work = work_on_marked_state(make_method(name))
    if not any(flat(each.kept) for each in work):
        pytest.skip("keeps no private state")
    known = KEPT_AS_SENT.get(name, set())
    for each in work:
        assert is_all_finite(each.reply)
        assert copies(each.reply, each.state) == []
        assert copies({key: item for key, item in each.reply.items() if key not in known}, each.kept) == []


def work_on_marked_state(method: FedAlgorithm) -> list[Work]:
    """Two rounds of work, with noise on the private state that makes every number in it the only one such."""
    draw = torch.Generator().manual_seed(1)
    problem = WatchedProblem.of(tiny_problem(method), disturb=lambda state: noisy(state, draw))
    run(problem, LoopHost(problem), rounds=2)
    return problem.work


def copies(reply: Message, private: State) -> list[str]:
    """Where a reply has memory or numbers of the private state, in whatever arrangement."""
    return [
        f"reply.{sent} has numbers of {kept}"
        for sent, given in flat(reply).items()
        for kept, own in flat(private).items()
        if given.untyped_storage().data_ptr() == own.untyped_storage().data_ptr()
        or torch.isin(telling(given), telling(own)).any()
    ]


def telling(leaf: Tensor) -> Tensor:
    """The numbers that give a tensor away; zeros, counts and flags may turn up anywhere."""
    values = leaf.detach().flatten().float()
    return values[values != values.round()]


class _Personal(FedAvg):
    """Every client has a bias of its own; with `sent` it betrays it."""

    label: ClassVar[str] = "Personal"
    sent: str = "nothing"

    def client(self, task: Task) -> State:
        return {"bias": torch.zeros(task.classes)}

    def round(self, task: Task) -> Round:
        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            start = message["model"] | Tree({"classifier.bias": client["bias"]})
            y = task.train(start, self.objective(task, client, message), batches)
            bias = y["classifier.bias"]
            betrayed: dict[str, Message] = {
                "nothing": {},
                "itself": {"extra": client["bias"]},
                "a copy": {"extra": client["bias"].clone()},
                "among others": {"extra": torch.cat([y["classifier.weight"].flatten(), client["bias"]])},
                "rearranged": {"extra": Tree({"leaf": client["bias"].flip(0).double()})},
                "one number": {"extra": client["bias"][1] * 1},
                "after training": {"extra": bias.clone()},
                "in the model": {"model": y},
            }
            return {"model": y | message["model"].only(["classifier.bias"])} | betrayed[self.sent], {
                "bias": bias
            }

        return super().round(task)._replace(local=local)


@pytest.mark.parametrize(
    "sent",
    ["itself", "a copy", "among others", "rearranged", "one number", "after training", "in the model"],
)
def test_a_reply_with_private_state_is_noticed(sent: str) -> None:
    for work in work_on_marked_state(_Personal(sent=sent)):
        assert copies(work.reply, work.state) + copies(work.reply, work.kept)


def test_a_reply_without_private_state_is_not_suspected() -> None:
    for work in work_on_marked_state(_Personal()):
        assert copies(work.reply, work.state) + copies(work.reply, work.kept) == []


# FedAvg as a special case

NEUTRAL: dict[str, dict[str, Any] | str] = {
    "central": "has no server model",
    "ditto": {},
    "fedadagrad": "scales every coordinate by its past",
    "fedadam": "scales every coordinate by its past",
    "fedavg": {},
    "fedavgm": {"server_lr": 1.0, "beta": 0.0},
    "fedclip": {},
    "feddyn": "has a server term that does not vanish with alpha",
    "fedfa": {"probability": 0.0},
    "fedgen": {"alpha": 0.0, "beta": 0.0},
    "fedlora": {},
    "fedlsa": "classifies points on the sphere at every setting",
    "fedmix": {"lam": 0.0},
    "fedntd": {"beta": 0.0},
    "fedproto": "has no server model",
    "fedproto_avg": {"lam": 0.0},
    "fedprox": {"mu": 0.0},
    "fedtpg": {},
    "fedrep": "has no global classifier",
    "fedsdg": "trains private adapters at every setting",
    "fedyogi": "scales every coordinate by its past",
    "ggeur+fedavg": {"samples_per_class": 1},
    "ggeur+scaffold": "corrects drift at every setting",
    "local": "has no server model",
    "moon": {"mu": 0.0},
    "scaffold": "corrects drift at every setting",
}
"""The hyperparameters at which a method is FedAvg, or why it has none."""


@every_method
def test_is_fedavg_at_its_neutral_hyperparameters(name: str) -> None:
    assert name in NEUTRAL, f"add to NEUTRAL in {__file__} at which hyperparameters '{name}' is FedAvg"
    neutral = NEUTRAL[name]
    if isinstance(neutral, str):
        pytest.skip(neutral)
    method = make_method(name, **neutral)
    model = accepted_model(method)
    ends = []
    for each in (method, FedAvg()):
        problem = tiny_problem(each, model)
        ends.append(served(run(problem, LoopHost(problem), rounds=2).server)["model"])
    assert differing(*ends) == []


# Hyperparameters


@every_method
def test_an_unknown_hyperparameter_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="unknown key 'no_such_thing'"):
        validated(METHODS.load(name), {"no_such_thing": 1}, f"method '{name}'")


@every_method
def test_hyperparameters_beyond_their_bounds_are_refused(name: str) -> None:
    kind = METHODS.load(name)
    wrong: list[tuple[str, Any]] = [("weighting", "at random")] if "weighting" in kind.model_fields else []
    for key, schema in kind.model_json_schema()["properties"].items():
        for part in (schema, *schema.get("anyOf", ())):
            wrong += [(key, part["minimum"] - 1)] if "minimum" in part else []
            wrong += [(key, part["maximum"] + 1)] if "maximum" in part else []
            wrong += [(key, part[end]) for end in ("exclusiveMinimum", "exclusiveMaximum") if end in part]
            wrong += [(key, float("nan")), (key, float("inf"))] if part.get("type") == "number" else []
    for key, value in wrong:
        with pytest.raises(UserError, match=f"{key} = "):
            validated(kind, {key: value}, f"method '{name}'")


# A client that blows up


@every_method
@in_one_process
def test_a_client_that_blows_up_is_left_out(name: str, kind: type[Host], tmp_path: Path) -> None:
    """The others get what they would without it, and it keeps the private state it had."""
    problem = tiny_problem(make_method(name))
    run(problem, kind(problem), rounds=1, save_to=tmp_path)
    before = kind(problem)
    before.load(tmp_path)
    bad = max(problem.train) // 2
    others = [client for client in problem.train if client != bad]

    host = kind(with_infinite_inputs(problem, bad))
    federation = resumed(host.problem, host, tmp_path, rounds=1)
    server_before = federation.server
    record = federation.advance()
    assert (record["clients"], record["dropped"]) == (len(problem.train), 1)
    assert is_all_finite(standing(federation, host))
    assert differing(host.state(bad), before.state(bad)) == []
    if not others:
        assert differing(federation.server, server_before) == []
        return
    fewer_host = kind(with_only(problem, others))
    fewer = resumed(fewer_host.problem, fewer_host, tmp_path, rounds=1)
    fewer.advance()
    tolerance = 0.0 if kind is LoopHost else 1e-6
    assert_close(federation.server, fewer.server, tolerance)
    for client in others:
        assert_close(host.state(client), fewer_host.state(client), tolerance)
        if flat(problem.method.client(problem.task)):
            assert differing(host.state(client), before.state(client))


# Clients start from what the server sends


def serves_a_model(method: FedAlgorithm) -> FedAlgorithm:
    """The method, or a skip if its server keeps no model."""
    if "model" not in served(method.server(tiny_problem(method).task)):
        pytest.skip("the server has no model")
    return method


def served(server: State) -> State:
    """The server's state, or with a wrapper that of the method inside."""
    return server.get("inner", server)


def makes_samples(method: FedAlgorithm) -> bool:
    return type(method).training_samples is not FedAlgorithm.training_samples


def unwrapped(method: FedAlgorithm) -> Any:
    return method.inner if isinstance(method, Wrapper) else method


@every_method
def test_every_message_carries_the_current_model_of_the_server(name: str) -> None:
    problem = WatchedProblem.of(tiny_problem(serves_a_model(make_method(name))))
    federation = run(problem, LoopHost(problem), rounds=0, participation=0.7)
    for _ in range(3):
        current = served(federation.server)["model"]
        problem.work.clear()
        federation.advance()
        assert len(problem.work) == 2
        for work in problem.work:
            assert differing(work.message["model"], current) == []
        assert differing(served(federation.server)["model"], current)


@every_method
def test_clients_start_from_the_model_they_are_sent(name: str) -> None:
    sent, returned = exchange_with_vanishing_steps(serves_a_model(make_method(name)))
    assert_close(sent, returned, tolerance=1e-5)


def exchange_with_vanishing_steps(method: FedAlgorithm) -> tuple[Tree, Tree]:
    """A model that no client has seen, and what the server makes of it when nobody learns anything."""
    problem = tiny_problem(method, optimiser=SGD(lr=1e-12))
    host = LoopHost(problem)
    federation = run(problem, host, rounds=1)
    sent = noisy(served(federation.server)["model"], torch.Generator().manual_seed(1))
    server = {**federation.server, "model": sent}
    if "inner" in server:
        server["inner"] = {**server["inner"], "model": sent}
    phases = problem.phases(problem.task)
    messages = [(client, phases[-1].down(server, client)) for client in problem.train]
    return sent, served(phases[-1].aggregate(server, host.run(len(phases) - 1, 2, messages)))["model"]


class _OwnStart(FedAvg):
    """Clients go on from where they stopped, whatever the server sends."""

    label: ClassVar[str] = "Own start"

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def round(self, task: Task) -> Round:
        base = super().round(task)

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            reply, _ = base.local(client, {"model": client["model"]}, batches)
            return reply, {"model": reply["model"]}

        return base._replace(local=local)


def test_clients_that_start_from_their_own_model_are_noticed() -> None:
    with pytest.raises(AssertionError):
        assert_close(*exchange_with_vanishing_steps(_OwnStart()), tolerance=1e-5)


# Random numbers


@every_method
def test_initial_weights_depend_on_the_seed_alone(name: str) -> None:
    if name in NEED_CLIP:
        pytest.skip("needs the weights of a CLIP model")
    model = accepted_cell_model(name)
    embedded = needs_vectors(name, model)
    one, other = (assembled(cell_config(each, model, embedded=embedded)) for each in (name, "fedavg"))
    assert differing(one.problem.task.initial, other.problem.task.initial) == []
    assert one.fingerprints == other.fingerprints
    method, task = one.problem.method, one.problem.task
    for state in (method.server(task), method.client(task)):
        if "model" in state:
            assert differing(state["model"], other.problem.task.initial.only(state["model"])) == []
    changed = assembled(cell_config(name, model, seed=1))
    assert changed.fingerprints.initial_weights != one.fingerprints.initial_weights
    assert differing(changed.problem.task.initial, one.problem.task.initial)


@every_method
def test_clients_and_batches_are_the_same_for_every_method(name: str) -> None:
    method = make_method(name)
    if method.pools_data:
        pytest.skip("has one client only")
    if makes_samples(method):
        pytest.skip("makes samples of its own")
    model = accepted_model(method)
    seen = []
    for each in (method, FedAvg()):
        problem = WatchedProblem.of(tiny_problem(each, model))
        federation = run(problem, LoopHost(problem), rounds=0, participation=0.7)
        problem.work.clear()
        for _ in range(3):
            federation.advance()
        batches = [batch for work in problem.work for batch in work.batches]
        seen.append({str(at): {"x": batch.x, "y": batch.y} for at, batch in enumerate(batches)})
    assert seen[0]
    assert differing(*seen) == []


@every_method
@in_one_process
def test_global_random_numbers_are_neither_used_nor_changed(name: str, kind: type[Host]) -> None:
    def ends() -> dict[str, Any]:
        problem = tiny_problem(make_method(name))
        host = kind(problem)
        federation = run(problem, host, rounds=2, participation=0.7)
        federation.evaluate(personal=True)
        return standing(federation, host)

    torch.manual_seed(1)
    first = ends()
    torch.manual_seed(2)
    np.random.seed(2)
    random.seed(2)
    before = torch.get_rng_state(), repr(np.random.get_state()), random.getstate()
    second = ends()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (repr(np.random.get_state()), random.getstate()) == before[1:]
    assert differing(first, second) == []
