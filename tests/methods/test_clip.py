"""FedCLIP and FedTPG: their parts by hand, and both on a small CLIP model with random weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest
import torch

from bench.config.cell import CellConfig
from bench.contract import check
from bench.data.datasets.office_caltech import OfficeCaltech
from bench.encoders import encoder_spec
from bench.engine.assembly import assemble
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.executors import choose
from bench.engine.federation import Federation
from bench.errors import UserError
from bench.suite.model import Suite
from bench.suite.planning import plan_cells
from methods.base import Task
from methods.core.optimisers import SGD, Adam
from methods.core.tree import size_in_bytes
from methods.fedclip import FedCLIP
from methods.fedtpg import FedTPG
from methods.modules.clip import CosineClassifier, FeatureAdapter, PromptGenerator
from tests.kit.contract import PLAIN, tiny_task
from tests.kit.data import domain_pictures, write_folder
from tests.kit.tiny import mlp_task

Array: TypeAlias = np.ndarray[Any, Any]
SMALL_CLIP = "ViT-S-32-alt"
METHODS = {"fedclip": FedCLIP(), "fedtpg": FedTPG()}


def rows(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


# The parts


def test_the_adapter_weighs_features_by_a_softmax() -> None:
    adapter, x = FeatureAdapter(6), rows(4, 6)
    first, second = adapter.weigh[0], adapter.weigh[2]
    assert isinstance(first, torch.nn.Linear) and isinstance(second, torch.nn.Linear)
    W1, b1, W2, b2 = (
        leaf.detach().double().numpy() for leaf in (first.weight, first.bias, second.weight, second.bias)
    )
    features = x.double().numpy()
    scores = np.tanh(features @ W1.T + b1) @ W2.T + b2
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(adapter(x).detach(), weights * features, atol=1e-6)


def test_logits_are_scaled_cosines() -> None:
    text, x = rows(3, 6, seed=1), rows(4, 6)
    expected = 100 * unit(x.double().numpy()) @ unit(text.double().numpy()).T
    np.testing.assert_allclose(CosineClassifier(text, 100.0)(x), expected, rtol=1e-4, atol=1e-4)


def test_the_generator_reads_all_names_whatever_their_order() -> None:
    def words(names: torch.Tensor) -> torch.Tensor:
        generator = PromptGenerator(names, tokens=4, width=8, heads=4)
        weights = PromptGenerator(rows(5, 6), tokens=4, width=8, heads=4).state_dict()
        generator.load_state_dict({name: rows(*leaf.shape, seed=3) for name, leaf in weights.items()})
        words: torch.Tensor = generator().detach()
        return words

    names = rows(5, 6)
    plain = words(names)
    assert plain.shape == (4, 8)
    np.testing.assert_allclose(words(names.flip(0)), plain, atol=1e-5)
    changed = names.clone()
    changed[2] = rows(6, seed=9)
    assert float((words(changed) - plain).abs().max()) > 1e-3


@pytest.mark.parametrize(
    ("name", "model", "trained"),
    [("fedclip", "adapter", "projector.weigh."), ("fedtpg", "prompts", "classifier.generator.")],
)
def test_only_what_is_trained_travels(name: str, model: str, trained: str) -> None:
    task = tiny_task(model, PLAIN, 3, 0)
    METHODS[name].check(task)
    assert {leaf for leaf in task.initial if not leaf.startswith(trained)} == set()
    assert task.initial.keys() == task.trainable
    assert list(METHODS[name].down(task, {"model": task.initial}, 0)) == ["model"]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_another_model_than_its_own_is_refused(method: Any) -> None:
    with pytest.raises(ValueError, match="alone: give it no model"):
        method.check(mlp_task())


def test_optimisers_are_the_papers() -> None:
    assert FedCLIP().client_optimiser == Adam(lr=5e-5, weight_decay=0.2)
    assert FedTPG().client_optimiser == SGD(lr=3e-3, momentum=0.9)


def config_of(method: str, encoder: str | None) -> CellConfig:
    suite = Suite.model_validate(
        {
            "suite": "clip",
            "version": 1,
            "title": "CLIP",
            "dataset": {"name": "office_caltech"},
            "partition": {"name": "by_domain", "clients": 4},
            **({"encoder": encoder} if encoder else {}),
            "model": {"name": "head"},
            "training": {
                "rounds": 2,
                "epochs": 1,
                "batch_size": 5,
                "optimiser": {"name": "sgd", "lr": 0.1},
            },
            "methods": [{"name": method}],
            "seeds": 1,
        }
    )
    return plan_cells(suite)[0].config


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two grey pictures a class and domain."""
    root = tmp_path_factory.mktemp("data")
    write_folder(root / "office_caltech", domain_pictures(OfficeCaltech.counts, OfficeCaltech.classes, 2))
    return root


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("encoder", [None, "pixels"])
def test_other_encoders_are_refused_in_one_sentence(method: str, encoder: str | None, office: Path) -> None:
    config = config_of(method, encoder)
    assert config.model.name == {"fedclip": "clip_adapter", "fedtpg": "prompt_generator"}[method]
    with pytest.raises(
        UserError, match="needs the embeddings and the text tower of a CLIP model; set"
    ) as told:
        assemble(config, office)
    assert "\n" not in str(told.value)


# On a CLIP model


class SmallClip(NamedTuple):
    encoder: str
    model: Any
    tokenise: Any


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallClip]:
    """The smallest CLIP that open_clip has, with random weights in a file."""
    import open_clip

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = open_clip.create_model(SMALL_CLIP).eval().requires_grad_(False)
    file = tmp_path_factory.mktemp("clip") / "small.pt"
    torch.save(model.state_dict(), file)
    yield SmallClip(f"open_clip:{SMALL_CLIP}@{file}", model, open_clip.get_tokenizer(SMALL_CLIP))
    file.unlink()


def test_prompts_of_ordinary_words_have_their_text_features(clip: SmallClip) -> None:
    """The words' own vectors as context give what the whole tower makes of the sentence."""
    from bench.encoders.prompts import prompted_text_tower

    names = ["mug", "desk_lamp", "computer"]
    tower = prompted_text_tower(encoder_spec(clip.encoder), names, tokens=4)
    context = clip.model.token_embedding(clip.tokenise(["a photo of a"])[0, 1:5])
    expected = clip.model.encode_text(clip.tokenise([f"a photo of a {n.replace('_', ' ')}." for n in names]))
    np.testing.assert_allclose(tower(context), expected, rtol=1e-4, atol=1e-5)
    assert tower.words.shape[1] < 12  # of 77
    assert not any(leaf.requires_grad for leaf in tower.parameters())


@pytest.mark.parametrize("method", METHODS)
def test_a_cell_on_a_clip_model(method: str, clip: SmallClip, office: Path, tmp_path: Path) -> None:
    problem = assemble(config_of(method, clip.encoder), office).problem
    task = problem.task
    assert task.optimiser == METHODS[method].client_optimiser
    assert choose(problem)[0] == {"fedclip": "stacked", "fedtpg": "loop"}[method]
    x = problem.test["amazon"].x
    with task.evaluation():
        logits = task.logits(task.initial, x)
    np.testing.assert_allclose(logits, by_hand(method, task, clip, x), rtol=1e-3, atol=1e-2)

    again = assemble(config_of(method, clip.encoder), office)
    assert all(torch.equal(leaf, task.initial[name]) for name, leaf in again.problem.task.initial.items())
    ends = []
    for kind in (LoopHost, StackedHost):
        federation = Federation(problem, kind(problem))
        record = federation.advance()
        assert record["bytes_up"] == 4 * size_in_bytes(task.initial)
        assert record["dropped"] == 0
        ends.append(federation.server["model"])
    moved = float((ends[0] - task.initial).norm())
    assert moved > 0
    assert float((ends[0] - ends[1]).norm()) < 0.01 * moved
    federation.save(tmp_path)
    saved = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert saved < 1.2 * size_in_bytes(task.initial) + 20_000


def by_hand(method: str, task: Task, clip: SmallClip, x: torch.Tensor) -> Array:
    """The logits at the start, from the whole CLIP model."""
    names = OfficeCaltech.classes
    if method == "fedclip":
        text = clip.model.encode_text(clip.tokenise([f"a picture of a {name}" for name in names]))
        x = task.project(task.initial, x).detach()
    else:
        generator: Any = task.model.classifier
        words = generator.generator().detach()
        own = clip.model.encode_text(clip.tokenise(list(names)), normalize=True)
        np.testing.assert_allclose(generator.generator.names, own, atol=1e-5)
        tokens = clip.tokenise([f"X X X X {name}." for name in names])
        embedded = clip.model.token_embedding(tokens)
        embedded[:, 1:5] = words
        states = clip.model.transformer(
            embedded + clip.model.positional_embedding, attn_mask=clip.model.attn_mask
        )
        ends = clip.model.ln_final(states)[torch.arange(len(names)), tokens.argmax(dim=1)]
        text = ends @ clip.model.text_projection
    return np.asarray(100 * unit(x.double().numpy()) @ unit(text.double().numpy()).T)


def test_fedclip_with_the_contrast_keeps_the_contract() -> None:
    report = check("fedclip", {"loss": "contrastive"}, remember=False)
    broken = [finding for finding in report.findings if finding.rule != "neutral setting"]
    assert not broken, str(report)
    assert "loss" not in FedCLIP().model_dump(mode="json")
