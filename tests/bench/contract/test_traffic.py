"""What every registered method sends: the bytes, which a new one adds to TRAFFIC, and nothing private."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import pytest
import torch
from torch import Tensor

from bench.engine.federation import Federation
from bench.engine.hosts.base import Host
from bench.engine.hosts.loop import LoopHost
from kit.contract import (
    WatchedProblem,
    Work,
    every_method,
    flat,
    in_one_process,
    is_all_finite,
    make_method,
    noisy,
    run,
    tiny_problem,
)
from methods.base import Batches, FedAlgorithm, Message, State, Task, Tree
from methods.fedavg import FedAvg

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
    "aligned+fedavg": MODEL_BOTH_WAYS,
    "aligned+moon": MODEL_BOTH_WAYS,
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

KEPT_AS_SENT = {"moon": {"model"}, "aligned+moon": {"model"}}
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

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
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
        reply = {"model": y | message["model"].only(["classifier.bias"])}
        return reply | betrayed[self.sent], {"bias": bias}


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
