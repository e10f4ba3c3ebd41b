"""Tiny federations for the contract that every method keeps, and ways to look inside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from bench.cells import Conditions
from bench.config import Suite
from bench.engine.assembly import assemble
from bench.engine.federation import Federation
from bench.engine.hosts import Host, Hosts, Problem, Samples
from bench.errors import UserError
from bench.methods_registry import AROUND, METHODS
from bench.models.architectures.cnn import CNN
from bench.models.architectures.head import Head
from bench.models.architectures.mlp import MLP
from bench.models.base import ModelSpec, seeded_model
from bench.models.vit import LoraOptions
from bench.planning import plan_cells
from methods.base import Batch, Batches, FedAlgorithm, Message, Round, State, Task
from methods.parts.clip import CosineClassifier, FeatureAdapter, PromptedClassifier, PromptGenerator
from methods.parts.optimisers import SGD, Optimiser
from methods.parts.streams import generator
from methods.parts.task import SplitModel, initial_tree

SIZES = (7, 12, 5)
"""Samples per client: with batches of 4 their last ones are uneven, and so are the numbers of steps."""
BATCH = 4
NORM_BATCH = 5
"""Leaves no batch of one sample, which batch norm cannot take."""
CLASSES = 3
PLAIN = SGD(lr=0.1)
QUICK = {"server_steps": 3, "samples_per_class": 6}
"""Hyperparameters that only make a method take longer, where it has them."""


class Norm(ModelSpec):
    """Has batch norm, thus buffers of floats and of an integer."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        encoder = nn.Sequential(nn.Linear(shape[0], 8), nn.BatchNorm1d(8), nn.ReLU())
        return SplitModel(encoder, nn.Identity(), nn.Linear(8, classes), feature_size=8, embedding_size=8)


class Adapter(ModelSpec):
    """FedCLIP's, on texts that no CLIP model has made."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        width = shape[0]
        classifier = CosineClassifier(torch.randn(classes, width), scale=2.0)
        return SplitModel(
            nn.Identity(), FeatureAdapter(width), classifier, feature_size=width, embedding_size=width
        )


class Prompts(ModelSpec):
    """FedTPG's, with a tiny text tower that no CLIP model has."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        width = shape[0]
        generator = PromptGenerator(torch.randn(classes, width), tokens=2, width=8, heads=4)
        classifier = PromptedClassifier(generator, TextTower(classes, words=8, width=width), scale=2.0)
        return SplitModel(nn.Identity(), nn.Identity(), classifier, feature_size=width, embedding_size=width)


class TextTower(nn.Module):
    """Attention over the context words and one word a class, read at the latter."""

    def __init__(self, classes: int, words: int, width: int) -> None:
        super().__init__()
        self.names = nn.Parameter(torch.randn(classes, 1, words))
        self.attention = nn.MultiheadAttention(words, 2, batch_first=True)
        self.project = nn.Linear(words, width)

    def forward(self, context: Tensor) -> Tensor:
        x = torch.cat([context.expand(len(self.names), *context.shape), self.names], dim=1)
        return self.project(self.attention(x, x, x, need_weights=False)[0][:, -1])


class Vit(LoraOptions):
    """A frozen transformer of two blocks with LoRA branches of rank 2."""

    rank: int = 2

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        from timm.models import VisionTransformer

        vit = VisionTransformer(
            img_size=shape[-1],
            patch_size=4,
            embed_dim=8,
            depth=2,
            num_heads=2,
            mlp_ratio=2,
            num_classes=0,
            global_pool="avg",
            class_token=False,
        )
        return self.adapted(vit, classes)


class TinyModel(NamedTuple):
    spec: ModelSpec
    shape: tuple[int, ...]


MODELS = {
    "mlp": TinyModel(MLP(hidden=8), (6,)),
    "cnn": TinyModel(CNN(channels=(2, 3), features=6, embedding=5, grid=2), (1, 8, 8)),
    "head": TinyModel(Head(), (6,)),
    "norm": TinyModel(Norm(), (6,)),
    "adapter": TinyModel(Adapter(), (6,)),
    "prompts": TinyModel(Prompts(), (6,)),
    "vit": TinyModel(Vit(), (3, 8, 8)),
}
NEED_CLIP = ("fedclip", "fedtpg")
"""Cells of these cannot be assembled without the weights of a CLIP model."""


def make_method(name: str, **hyperparameters: Any) -> FedAlgorithm:
    return METHODS.load(name)(**quick(name) | hyperparameters)


def quick(name: str) -> dict[str, Any]:
    return {key: value for key, value in QUICK.items() if key in METHODS.load(name).model_fields}


def tiny_problem(
    method: FedAlgorithm,
    model: str | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    optimiser: Optimiser = PLAIN,
    epochs: int = 2,
    batch_size: int = BATCH,
    seed: int = 0,
) -> Problem:
    """Clients 0, 1, … with so many samples each; by default on the first tiny model that the method accepts.

    With a model or an optimiser that the method refuses, the test is skipped.
    """
    if model is None:
        model = accepted_model(method)
    task = tiny_task(model, optimiser, len(sizes), seed)
    try:
        method.check(task)
    except ValueError as refusal:
        pytest.skip(f"{method.label} {refusal}")
    shape = MODELS[model].shape
    train = {client: samples(size, shape, "train", client) for client, size in enumerate(sizes)}
    if method.pools_data:
        train = {0: Samples(*(torch.cat(part) for part in zip(*train.values(), strict=True)))}
    return Problem(
        task=task,
        method=method,
        epochs=epochs,
        batch_size=batch_size,
        train=train,
        validation={client: samples(3, shape, "validation", client) for client in train},
        test={"near": samples(20, shape, "near"), "far": samples(15, shape, "far")},
        own_test={client: {"near": torch.arange(client, 12), "far": torch.arange(5)} for client in train},
    )


def accepted_model(method: FedAlgorithm) -> str:
    """The first tiny model on which the method runs with plain SGD."""
    refusals = []
    for model in MODELS:
        try:
            method.check(tiny_task(model, PLAIN, len(SIZES), 0))
        except ValueError as refusal:
            refusals.append(f"{model}: {refusal}")
        else:
            return model
    pytest.fail(
        f"{method.label} refuses every tiny model ({'; '.join(refusals)}): "
        "add one that it accepts to MODELS in tests/contract_builder.py"
    )


def tiny_task(model: str, optimiser: Optimiser, clients: int, seed: int) -> Task:
    spec, shape = MODELS[model]
    built = seeded_model(spec, shape, CLASSES, seed)
    return Task(built, initial_tree(built), CLASSES, clients, optimiser, seed, input_shape=shape)


def samples(count: int, shape: tuple[int, ...], *key: str | int) -> Samples:
    """Noise around one point a class; the smallest client has none of the last class."""
    draw = generator(0, "/".join(map(str, key)))
    y = torch.arange(count) % (2 if count == SIZES[-1] else CLASSES)
    middles = torch.randn(CLASSES, *shape, generator=generator(0, "middles"))
    return Samples(middles[y] + 0.5 * torch.randn(count, *shape, generator=draw), y)


def run(
    problem: Problem, hosts: Hosts, rounds: int, participation: float = 1.0, save_to: Path | None = None
) -> Federation:
    """A federation after its prelude and so many rounds."""
    federation = Federation(problem, hosts, participation)
    if federation.has_prelude:
        federation.prelude()
    for _ in range(rounds):
        federation.advance()
    if save_to is not None:
        save_to.mkdir(exist_ok=True)
        federation.save(save_to)
    return federation


def resumed(
    problem: Problem, hosts: Hosts, folder: Path, rounds: int, participation: float = 1.0
) -> Federation:
    """A new federation that takes up what another has saved after so many rounds."""
    federation = Federation(problem, hosts, participation)
    federation.load(folder, rounds)
    return federation


@dataclass(frozen=True)
class Work:
    """One client's work in one exchange: what went in, what came out, and copies of it made at the time."""

    state: State
    message: Message
    batches: list[Batch]
    reply: Message
    kept: State
    copies: dict[str, Any]

    @property
    def edited(self) -> list[str]:
        """What has been changed in place since."""
        return differing(self.copies, {name: getattr(self, name) for name in self.copies})


@dataclass(frozen=True)
class WatchedProblem(Problem):
    """Notes all local work, and may disturb the private state that goes into it."""

    disturb: Callable[[State], State] = lambda state: state
    work: list[Work] = field(default_factory=list)

    @classmethod
    def of(cls, problem: Problem, disturb: Callable[[State], State] = lambda state: state) -> WatchedProblem:
        return cls(**{each.name: getattr(problem, each.name) for each in fields(problem)}, disturb=disturb)

    def phases(self, task: Task) -> list[Round]:
        return [phase._replace(local=self._watched(phase.local)) for phase in super().phases(task)]

    def _watched(self, local: Callable[..., tuple[Message, State]]) -> Callable[..., tuple[Message, State]]:
        def watched(state: State, message: Message, batches: Batches) -> tuple[Message, State]:
            state = self.disturb(state)
            given = copied({"state": state, "message": message})
            reply, kept = local(state, message, batches)
            copies = given | copied({"reply": reply, "kept": kept})
            self.work.append(Work(state, message, list(batches), reply, kept, copies))
            return reply, kept

        return watched


def with_only(problem: Problem, clients: Sequence[int]) -> Problem:
    """The same problem without the other clients' data; ids and random streams stay."""
    return replace(problem, train={client: problem.train[client] for client in clients})


def with_infinite_inputs(problem: Problem, client: int) -> Problem:
    """One sample of the client is infinite in every feature."""
    x, y = problem.train[client]
    x = x.clone()
    x[0] = float("inf")
    return replace(problem, train={**problem.train, client: Samples(x, y)})


def standing(federation: Federation, host: Host) -> dict[str, Any]:
    """All that a run has come to: the server's state and every client's."""
    return {
        "server": federation.server,
        "clients": {str(client): host.state(client) for client in federation.problem.train},
    }


def flat(nest: Any, name: str = "") -> dict[str, Tensor]:
    """Dotted names to tensors."""
    if isinstance(nest, Tensor):
        return {name: nest}
    if isinstance(nest, Mapping):
        return {
            key: leaf
            for part, item in nest.items()
            for key, leaf in flat(item, f"{name}.{part}" if name else str(part)).items()
        }
    return {name: torch.tensor(nest)}


def differing(one: Any, other: Any) -> list[str]:
    """The names under which two nests do not hold the same bits."""
    first, second = flat(one), flat(other)
    return [
        name
        for name in first | second
        if name not in first or name not in second or not torch.equal(first[name], second[name])
    ]


def assert_close(one: Any, other: Any, tolerance: float) -> None:
    first, second = flat(one), flat(other)
    assert first.keys() == second.keys()
    gaps = {name: float((leaf.double() - second[name].double()).abs().max()) for name, leaf in first.items()}
    assert {name: gap for name, gap in gaps.items() if not gap <= tolerance} == {}


def is_all_finite(nest: Any) -> bool:
    return all(bool(torch.isfinite(leaf).all()) for leaf in flat(nest).values())


def each_tensor(nest: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(nest, Tensor):
        return function(nest)
    return type(nest)({key: each_tensor(item, function) for key, item in nest.items()})


def copied(nest: Any) -> Any:
    return each_tensor(nest, torch.clone)


def noisy(nest: Any, draw: torch.Generator) -> Any:
    """A copy whose floats are all a little larger, each by another amount."""

    def add_noise(leaf: Tensor) -> Tensor:
        noise = 0.01 * torch.rand(leaf.shape, generator=draw)
        return leaf + noise.to(leaf.dtype) if leaf.is_floating_point() else leaf.clone()

    return each_tensor(nest, add_noise)


def predictions(federation: Federation, host: Host) -> Tensor:
    """The scores for all test samples: the global model's, or where there is none, the first client's."""
    problem = federation.problem
    state = None if problem.method.has_global_model else host.state(min(problem.train))
    with torch.no_grad():
        scores = [
            problem.method.predict(problem.task, federation.server, state, x)
            for x, _ in problem.test.values()
        ]
    return torch.cat(scores)


CELL_MODELS: dict[str, dict[str, Any]] = {
    "mlp": {"name": "mlp", "hidden": 8},
    "cnn": {"name": "cnn", "channels": [2, 4], "features": 8, "embedding": 6, "grid": 4},
    "vit": {"name": "vit_mini"},
}


def needs_vectors(name: str, model: str) -> bool:
    """Whether the method is tested with this model on vectors instead of images."""
    return AROUND in name and model == "mlp"


def accepted_cell_model(name: str) -> str:
    """The first model of a real cell on which the method runs."""
    refusals = []
    for model in CELL_MODELS:
        try:
            assemble(cell_config(name, model))
        except UserError as refusal:
            refusals.append(str(refusal))
        else:
            return model
    pytest.fail(f"add a model to CELL_MODELS in tests/contract_builder.py: {'; '.join(refusals)}")


def cell_config(
    name: str, model: str, participation: float = 1.0, seed: int = 0, embedded: bool | None = None
) -> dict[str, Any]:
    """A real cell on the built-in digits: five clients of four domains, of unequal sizes."""
    if embedded is None:
        embedded = needs_vectors(name, model)
    suite = Suite.model_validate(
        {
            "suite": "contract",
            "version": 1,
            "title": "Contract",
            "dataset": {"name": "digits_mini"},
            "partition": {
                "name": "by_domain",
                "clients": {"mnist": 2, "optdigits": 1, "blended": 1, "fonts": 1},
                "fraction": 0.01,
            },
            **({"encoder": "pixels"} if embedded else {}),
            "model": CELL_MODELS[model],
            "training": {
                "rounds": 3,
                "epochs": 2,
                "batch_size": 8,
                "participation": participation,
                "optimiser": PLAIN.model_dump(mode="json"),
                "validation": 0.2,
            },
            "methods": [{"name": name, "set": quick(name)}],
            "seeds": seed + 1,
        }
    )
    return plan_cells(suite)[seed].config


class KeptActors:
    """Stands in for the starting of host actors: a cell gets those of the cell before it, made anew.

    To start a process takes seconds, and there are many cells.
    """

    def __init__(self, place: Callable[[int, Conditions], Any]) -> None:
        self._place = place
        self._kept: dict[int, Any] = {}

    def place(self, bundle: int, conditions: Conditions) -> Any:
        import ray

        def start(*arguments: Any) -> Any:
            if bundle in self._kept:
                anew = self._kept[bundle].__ray_call__
                ray.get(anew.remote(lambda host, *given: host.__init__(*given), *arguments))
            else:
                self._kept[bundle] = self._place(bundle, conditions).remote(*arguments)
            return self._kept[bundle]

        return SimpleNamespace(remote=start)

    def forget(self) -> list[Any]:
        """The next cell gets new ones."""
        kept, self._kept = list(self._kept.values()), {}
        return kept
