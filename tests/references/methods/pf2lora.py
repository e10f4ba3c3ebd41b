"""PF2LoRA: Hao et al., 2025: y ← y − η ∇_y f(x, y), and x along the hypergradient, spelt out term by term."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.references.plain import Case, FedAvg, evaluated, trained_parameters


class Reference(FedAvg):
    cases = (
        Case({"private_lr": 0.3}, model="vit"),
        Case(
            {"private_lr": 0.3, "private_rank": 2, "weighting": "uniform"},
            model="vit",
            optimiser="clipped adam",
            tolerance=1e-7,
        ),
    )

    def start(self) -> None:
        self.own = {
            client: {name: leaf.clone() for name, leaf in self.given.client_start.items()}
            for client in self.given.data
        }

    def connect(self, model: Any, private: dict[str, Tensor]) -> None:
        for name, layer in model.adapted():
            a, b = (private[f"private.{name}.lora_{part}.private.weight"] for part in "AB")
            layer.private = (a, b, 1.0)

    def client_round(self, client: int, number: int) -> Any:
        model = copy.deepcopy(self.model)
        shared = trained_parameters(model)
        optimiser = self.given.optimiser(shared)
        rate = self.settings["private_lr"]
        names, own = zip(*self.own[client].items(), strict=True)

        def loss_at(values: Any, x: Tensor, y: Tensor) -> Tensor:
            self.connect(model, dict(zip(names, values, strict=True)))
            return F.cross_entropy(model(x), y)

        for x, y in self.given.batches(client, number):
            before = [leaf.detach().requires_grad_() for leaf in own]
            with sdpa_kernel(SDPBackend.MATH):
                slopes = torch.autograd.grad(loss_at(before, x, y), before, create_graph=True)
            after = [
                (leaf - rate * slope).detach().requires_grad_()
                for leaf, slope in zip(before, slopes, strict=True)
            ]
            found = torch.autograd.grad(loss_at(after, x, y), [*shared, *after])
            direct, onward = found[: len(shared)], found[len(shared) :]
            mixed = torch.stack([(slope * v).sum() for slope, v in zip(slopes, onward, strict=True)]).sum()
            second = torch.autograd.grad(mixed, shared, allow_unused=True)
            parts = [
                (leaf * (d if s is None else d - rate * s)).sum()
                for leaf, d, s in zip(shared, direct, second, strict=True)
            ]
            self.given.step(optimiser, torch.stack(parts).sum())  # whose gradient is the hypergradient
            own = tuple(leaf.detach() for leaf in after)
        self.own[client] = dict(zip(names, own, strict=True))
        for _, layer in model.adapted():
            layer.private = None
        return model

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        model = copy.deepcopy(self.model)
        self.connect(model, self.own[client])
        return evaluated(model, x)

    def private_state(self, client: int) -> dict[str, Tensor]:
        return self.own[client]
