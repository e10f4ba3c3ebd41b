"""Runs a shipped method on a small real problem, and holds it to its reference round by round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from bench.contract.nests import flat
from bench.contract.runs import served_model
from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.suite.methods import METHODS
from methods.core.batches import Samples
from methods.core.optimisers import SGD, Adam, Optimiser
from methods.core.random import derive, normal, uniform
from methods.core.task import Task, initial_tree
from tests.references import data
from tests.references.given import Given
from tests.references.networks import NETWORKS
from tests.references.plain import Case, FedAvg

ROUNDS = 4
EPOCHS = 2
SEED = 0
"""With half of the clients, rounds have clients 0 and 3, 0 and 2, 2 and 3, 2 and 3; client 1 has none."""
OPTIMISERS: dict[str, Optimiser] = {
    "plain": SGD(lr=0.2),
    "momentum": SGD(lr=0.05, momentum=0.9, weight_decay=0.01),
    "clipped": SGD(lr=0.2, clip_norm=0.5),
    "adam": Adam(lr=0.01, weight_decay=0.001),
    "clipped adam": Adam(lr=0.01, clip_norm=0.5),
}


def reference_of(name: str) -> Any:
    """The class that is the reference of a method; None: there is no file of that name."""
    wrapper, plus, inner = name.partition("+")
    file = f"tests.references.wrappers.{wrapper}" if plus else f"tests.references.methods.{name}"
    if find_spec(file) is None:
        return None
    written = import_module(file)
    return written.around(reference_of(inner)) if plus else written.Reference


def number_of_cases(name: str) -> int:
    """How often a method is compared; once where it has no reference, so that a test can say so."""
    reference = reference_of(name)
    return len(reference.cases) if reference else 1


def participations(name: str, position: int) -> tuple[float, ...]:
    """The shares of clients per round with which a case is compared."""
    reference = reference_of(name)
    chosen = reference.cases[position].participation if reference else 1.0
    if chosen is not None:
        return (chosen,)
    return (1.0, 0.5) if position == 0 else (0.5,)


def problem_of(name: str, case: Case, participation: float = 1.0) -> Problem:
    """The digits 0 to 3 of scikit-learn, on four clients of unequal sizes and labels."""
    method = METHODS.load(name)(**case.settings)
    network = NETWORKS[case.model]
    model = network.ours()
    optimiser = method.client_optimiser or OPTIMISERS[case.optimiser]
    held = data.clients(network.inputs)
    task = Task(
        model,
        initial_tree(model),
        data.CLASSES,
        len(held),
        optimiser,
        SEED,
        domains=tuple(case.domains),
        input_shape=tuple(held[0][0].shape[1:]),
        rounds=ROUNDS,
        per_round=max(1, round(participation * len(held))),
    )
    method.check(task)
    train = {client: Samples(*samples) for client, samples in held.items()}
    if method.pools_data:
        train = {0: Samples(*(torch.cat(part) for part in zip(*train.values(), strict=True)))}
    return Problem(
        task=task,
        method=method,
        epochs=EPOCHS,
        batch_size=case.batch_size,
        train=train,
        validation={k: Samples(*samples) for k, samples in data.validation(network.inputs).items()},
        test={"digits": Samples(*data.test_samples(network.inputs))},
        own_test={},
    )


def given_of(problem: Problem, case: Case, participation: float) -> Given:
    """What the reference is told about a problem."""
    task, method = problem.task, problem.method
    federation = Federation(problem, LoopHost(problem), participation)
    untrained = method.model_copy(update={"server_steps": 0}) if hasattr(method, "server_steps") else method
    network = NETWORKS[case.model].plain()
    network.load_state_dict(task.model.state_dict())
    return Given(
        settings=method.model_dump(),
        initial=network,
        data={client: (x, y) for client, (x, y) in problem.train.items()},
        validation={client: (x, y) for client, (x, y) in problem.validation.items()},
        classes=task.classes,
        rounds=[federation.participants(number) for number in range(1, ROUNDS + 1)],
        optimiser_settings=task.optimiser.model_dump(),
        batch_size=problem.batch_size,
        orders=problem.orders,
        noise=noise_of(problem),
        generator=task.generator,
        common_normal=lambda purpose, shape: normal(
            derive(task.seed, purpose), 0, shape, torch.device("cpu")
        ),
        server_start=flat(untrained.server(task)),
        client_start=flat(method.client(task)),
        domains=case.domains,
    )


def noise_of(problem: Problem) -> Callable[..., Tensor]:
    kinds = {"normal": normal, "uniform": uniform}

    def noise(
        client: int, number: int, step: int, kind: str, shape: Sequence[int], stream: int = 0
    ) -> Tensor:
        return kinds[kind](problem.key(client, number) + step, stream, shape, torch.device("cpu"))

    return noise


def rounds_of(
    problem: Problem, kind: type[Host], participation: float
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Our method, round by round: what is compared of it."""
    host = kind(problem)
    federation = Federation(problem, host, participation)
    if federation.has_prelude:
        federation.prelude()
    for number in range(1, ROUNDS + 1):
        record = federation.advance()
        assert record["dropped"] == 0
        yield number, observed(problem, federation, host)


def observed(problem: Problem, federation: Federation, host: Host) -> dict[str, Any]:
    method, task, server = problem.method, problem.task, federation.server
    x = problem.test["digits"].x
    model = served_model(server)
    with task.evaluation():
        return {
            "model": {} if model is None else {**flat(model)},
            "scores": method.predict(task, server, None, x) if method.has_global_model else None,
            "scores of clients": {k: method.predict(task, server, host.state(k), x) for k in problem.train},
            "server": flat(server),
            "clients": {client: flat(host.state(client)) for client in problem.train},
        }


@cache
def expected_rounds(name: str, position: int, participation: float) -> list[dict[str, Any]]:
    """The reference, round by round; computed once for all executors."""
    case = reference_of(name).cases[position]
    problem = problem_of(name, case, participation)
    return run_reference(name, problem, given_of(problem, case, participation))


def run_reference(name: str, problem: Problem, told: Given) -> list[dict[str, Any]]:
    federated: FedAvg = reference_of(name)(told)
    outcomes = []
    for number in range(1, ROUNDS + 1):
        federated.server_round(number)
        outcomes.append(outcome(federated, problem))
    return outcomes


def outcome(federated: FedAvg, problem: Problem) -> dict[str, Any]:
    x = problem.test["digits"].x
    model = federated.global_model()
    expected = {
        "model": {} if model is None else model.state_dict(),
        "exact scores": federated.exact_scores,
        "scores": federated.predict(x) if problem.method.has_global_model else None,
        "scores of clients": {client: federated.predict_as(client, x) for client in problem.train},
        "server": federated.server_state(),
        "clients": {client: federated.private_state(client) for client in problem.train},
    }
    return cloned(expected)


def cloned(nest: Any) -> Any:
    if isinstance(nest, Tensor):
        return nest.detach().clone()
    return {key: cloned(item) for key, item in nest.items()} if isinstance(nest, dict) else nest


def differences(ours: dict[str, Any], expected: dict[str, Any], tolerance: float) -> list[str]:
    """What is not as the reference has it, in words."""
    found = []
    missing = ours["model"].keys() - expected["model"].keys() if expected["model"] else set()
    found += [f"the reference has no {name}" for name in sorted(missing)]
    shared = {
        name: leaf
        for name, leaf in expected["model"].items()
        if name in ours["model"] and leaf.is_floating_point()
    }
    pairs = {f"model {name}": (ours["model"][name], leaf) for name, leaf in shared.items()}
    compared = scores_themselves if expected["exact scores"] else predicted_classes
    if expected["scores"] is not None:
        pairs["scores of the global model"] = (compared(ours["scores"]), compared(expected["scores"]))
    for client, scores in expected["scores of clients"].items():
        pairs[f"scores of client {client}"] = (compared(ours["scores of clients"][client]), compared(scores))
    for name, leaf in expected["server"].items():
        pairs[f"server's {name}"] = (kept(ours["server"], name), leaf)
    for client, state in expected["clients"].items():
        for name, leaf in state.items():
            pairs[f"client {client}'s {name}"] = (kept(ours["clients"][client], name), leaf)
    for name, (one, other) in pairs.items():
        if one is None or one.shape != other.shape:
            found.append(
                f"{name}: ours is {None if one is None else tuple(one.shape)}, not {tuple(other.shape)}"
            )
        elif not (gap := float((one.double() - other.double()).abs().max())) <= tolerance * scale(other):
            found.append(f"{name} differs by {gap:.2g}")
    return found


def kept(state: dict[str, Tensor], name: str) -> Tensor | None:
    """What a state has under a name; a wrapper has the state of the method inside it under `inner`."""
    return state.get(name, state.get(f"inner.{name}"))


def scores_themselves(scores: Tensor) -> Tensor:
    """Scores up to a number per sample, which makes no difference to a prediction."""
    return scores.log_softmax(dim=1)


def predicted_classes(scores: Tensor) -> Tensor:
    return scores.argmax(dim=1)


def scale(tensor: Tensor) -> float:
    """The size of the numbers that are compared, at least 1."""
    return max(1.0, float(tensor.abs().max())) if tensor.numel() else 1.0
