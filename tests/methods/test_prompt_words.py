"""PromptFL and FedPGP: words that are trained before the classes' names."""

from __future__ import annotations

import torch

from bench.engine.clients.loop import LoopHost
from methods.core.optimisers import SGD
from methods.fedpgp import FedPGP
from tests.kit.contract import make_method, run, samples, tiny_problem, tiny_task

WORD_BYTES = 3 * 8 * 4


def test_only_the_words_travel() -> None:
    for name in ("promptfl", "fedpgp"):
        problem = tiny_problem(make_method(name))
        record = run(problem, LoopHost(problem), rounds=0).advance()
        assert (record["bytes_up"], record["bytes_down"]) == (3 * WORD_BYTES, 3 * WORD_BYTES)


def test_a_client_begins_with_the_shared_words() -> None:
    task = tiny_task("context", SGD(lr=0.1), clients=2, seed=0)
    method, (x, _) = FedPGP(), samples(5, (6,), "some")
    server = method.server(task)
    own, shared = (method.predict(task, server, state, x) for state in (method.client(task), None))
    assert torch.equal(own, shared)
