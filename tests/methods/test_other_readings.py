"""FedCLIP, FEDGEN and FedMix where their papers or public codes can be read in another way."""

import numpy as np
import pytest
import torch

from bench.contract import check
from bench.contract.stage import PLAIN, tiny_task
from methods.base import Batch
from methods.fedclip import FedCLIP
from methods.fedgen import FedGen, make_latent
from methods.fedmix import FedMix
from methods.modules.clip import CosineClassifier
from tests.kit.tiny import close, draw, federation, head_task, nearby, uneven_clients


def test_fedclips_contrast_within_a_batch_is_that_of_numpy() -> None:
    task = tiny_task("adapter", PLAIN, 1, 0)
    classifier = task.model.classifier
    assert isinstance(classifier, CosineClassifier)
    method, y = FedCLIP(loss="contrastive"), torch.tensor([0, 2, 0, 1])
    x, more = torch.randn(4, 6, generator=draw(1)), torch.randn(2, 6, generator=draw(2))
    images = task.embed(task.initial, x).detach().double().numpy()
    images = images / np.linalg.norm(images, axis=1, keepdims=True)
    logits = 2.0 * images @ classifier.text.double().numpy()[y].T
    by_text = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    by_image = np.log(np.exp(logits).sum(axis=0)) - np.diag(logits)
    loss = method.objective(task, {}, {})
    expected = (by_text.mean() + by_image.mean()) / 2
    assert float(loss(task.initial, Batch(x, y))) == pytest.approx(expected, rel=1e-5)
    padded = Batch(torch.cat([x, more]), torch.cat([y, y[:2]]), torch.tensor([1.0, 1, 1, 1, 0, 0]))
    assert float(loss(task.initial, padded)) == pytest.approx(expected, rel=1e-5)


def test_fedclip_with_the_contrast_keeps_the_contract() -> None:
    report = check("fedclip", {"loss": "contrastive"}, remember=False)
    broken = [finding for finding in report.findings if finding.rule != "neutral setting"]
    assert not broken, str(report)
    assert "loss" not in FedCLIP().model_dump(mode="json")


def test_fedgens_teachers_average_their_logits() -> None:
    """One generator step by torch.optim on the cross-entropy of the weighted mean of the heads' logits."""
    task = head_task(2)
    heads = [nearby(task.initial, 1, scale=2.0), nearby(task.initial, 2, scale=2.0)]
    counts = torch.tensor([[30.0, 10.0, 0.0], [0.0, 10.0, 30.0]])
    how = {"server_steps": 1, "server_lr": 0.01, "eta": 0.0, "hidden": 8, "server_weight_decay": 0.1}
    method = FedGen(teachers="logits", **how)
    server = method.server(task)
    [batch] = method.draws(task, 0, counts.sum(dim=0))
    leaves = {name: leaf.clone().requires_grad_() for name, leaf in server["generator"].items()}
    optimiser = torch.optim.Adam(leaves.values(), lr=0.01, weight_decay=0.1)
    z = make_latent(type(server["generator"])(leaves), batch.x, batch.y)
    weights = (counts / counts.sum(dim=0))[:, batch.y]
    logits = sum(w[:, None] * task.classify(head, z) for w, head in zip(weights, heads, strict=True))
    assert isinstance(logits, torch.Tensor)
    torch.nn.functional.cross_entropy(logits, batch.y).backward()
    optimiser.step()
    found = method.taught(task, server, heads, counts)
    assert close(found, type(found)({name: leaf.detach() for name, leaf in leaves.items()}), tolerance=1e-6)
    assert not close(found, FedGen(**how).taught(task, server, heads, counts), tolerance=1e-4)


def test_fedmix_can_average_all_of_a_clients_samples() -> None:
    clients = uneven_clients()
    run, host = federation(FedMix(group_size="all"), head_task(), clients)
    run.prelude()
    means = host.state(0)["means"]
    expected = np.stack([each.x.numpy().mean(axis=0) for each in clients])
    np.testing.assert_allclose(means["x"].numpy(), expected, atol=1e-6)
    assert means["y"][2].tolist() == [0.5, 0.5, 0.0]
    assert FedMix().model_dump(mode="json")["group_size"] == 5
