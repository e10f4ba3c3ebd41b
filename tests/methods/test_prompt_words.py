"""PromptFL and FedPGP: words that are trained before the classes' names."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.engine.hosts.loop import LoopHost
from methods.core.batches import RaggedBatches, Samples
from methods.core.optimisers import SGD
from methods.fedpgp import FACTORS, WORDS, FedPGP
from tests.kit.contract import make_method, run, samples, tiny_problem, tiny_task

WORD_BYTES = 3 * 8 * 4


def test_only_the_words_travel() -> None:
    for name in ("promptfl", "fedpgp"):
        problem = tiny_problem(make_method(name))
        record = run(problem, LoopHost(problem), rounds=0).advance()
        assert (record["bytes_up"], record["bytes_down"]) == (3 * WORD_BYTES, 3 * WORD_BYTES)


def test_fedpgp_takes_a_step_on_both_terms() -> None:
    method = FedPGP(mu=0.7, rank=2, temperature=0.3)
    task = tiny_task("context", SGD(lr=0.1), clients=2, seed=0)
    x, y = samples(4, (6,), "hand")
    draw = torch.Generator().manual_seed(3)
    factors = {
        name: 0.3 * torch.randn(leaf.shape, generator=draw)
        for name, leaf in method.client(task)["factors"].items()
    }
    words = task.initial[WORDS]
    state = {"factors": type(task.initial)(factors)}
    batches = RaggedBatches(Samples(x, y), [torch.arange(4)], 4)
    reply, kept = method.local(task, state, {"model": task.initial}, batches)

    leaves = [words.clone(), *(factors[name].clone() for name in FACTORS)]
    for leaf in leaves:
        leaf.requires_grad_()
    shared, tall, wide = leaves
    classifier = task.model.classifier
    own_text, text = (F.normalize(classifier.text_tower(w), dim=1) for w in (shared + tall @ wide, shared))
    logits = classifier.scale * F.normalize(x, dim=1) @ own_text.T
    positive, negative = ((text * other).sum(dim=1) / 0.3 for other in (classifier.written, own_text))
    contrast = -(positive.exp() / (positive.exp() + negative.exp())).log().mean()
    loss = F.cross_entropy(logits, y) + 0.7 * contrast
    moved = [leaf - 0.1 * grad for leaf, grad in zip(leaves, torch.autograd.grad(loss, leaves), strict=True)]
    torch.testing.assert_close(reply["model"][WORDS], moved[0], atol=1e-6, rtol=0)
    for name, leaf in zip(FACTORS, moved[1:], strict=True):
        torch.testing.assert_close(kept["factors"][name], leaf, atol=1e-6, rtol=0)


def test_a_client_begins_with_the_shared_words() -> None:
    task = tiny_task("context", SGD(lr=0.1), clients=2, seed=0)
    method, (x, _) = FedPGP(), samples(5, (6,), "some")
    server = method.server(task)
    own, shared = (method.predict(task, server, state, x) for state in (method.client(task), None))
    assert torch.equal(own, shared)
