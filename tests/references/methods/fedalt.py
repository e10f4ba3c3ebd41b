"""FedALT: Bian et al., AAAI 2026.

Layer: W x + s g_1(x) B_r A_r x + s g_2(x) B_l A_l x, g = softmax(G x) per token. A client goes on with its
own A_l, B_l, G and head, while A_r and B_r stand still: the plain means of what the server last heard of
the other clients.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.lora import ALPHA, RANK
from tests.references.plain import Case, FedAvg, evaluated


class Routed(nn.Module):
    """A layer whose two branches are weighted token by token."""

    def __init__(self, frozen: nn.Module, own: list[Tensor], rest: list[Tensor], router: Tensor) -> None:
        super().__init__()
        self.frozen = frozen
        self.own = nn.ParameterList([factor.clone() for factor in own])
        self.rest = [factor.clone() for factor in rest]
        self.router = nn.Parameter(router.clone())

    def forward(self, x: Tensor) -> Tensor:
        gates = (x @ self.router.T).softmax(dim=-1)
        scale = ALPHA / RANK
        others = x @ self.rest[0].T @ self.rest[1].T
        own = x @ self.own[0].T @ self.own[1].T
        out: Tensor = self.frozen(x) + scale * (gates[..., :1] * others + gates[..., 1:] * own)
        return out


class Reference(FedAvg):
    cases = (Case(model="vit", tolerance=1e-7), Case(model="vit", optimiser="adam", tolerance=1e-7))

    def start(self) -> None:
        self.names = [name for name, _ in self.model.adapted()]
        self.first = {
            name: [layer.lora_A["shared"].weight.detach(), layer.lora_B["shared"].weight.detach()]
            for name, layer in self.model.adapted()
        }
        self.heard: dict[int, dict[str, list[Tensor]]] = {}
        self.own = {client: self.assembled() for client in self.given.data}

    def assembled(self) -> Any:
        """What every client starts from."""
        model = copy.deepcopy(self.model).requires_grad_(False)
        for name in self.names:
            router = self.given.client_start[f"router.{name}.router"]
            factors = self.first[name]
            model.set_submodule(name, Routed(model.get_submodule(name).base_layer, factors, factors, router))
        model.classifier.requires_grad_(True)
        return model

    def rest_of_world(self, client: int, name: str) -> list[Tensor]:
        others = [factors[name] for other, factors in self.heard.items() if other != client]
        if not others:
            return self.first[name]
        return [torch.stack([factors[part] for factors in others]).mean(dim=0) for part in range(2)]

    def server_round(self, number: int) -> None:
        clients = self.given.rounds[number - 1]
        sent = {k: {name: self.rest_of_world(k, name) for name in self.names} for k in clients}
        for client in clients:
            model = self.own[client]
            for name in self.names:
                model.get_submodule(name).rest = sent[client][name]
            optimiser = self.given.optimiser([leaf for leaf in model.parameters() if leaf.requires_grad])
            for x, y in self.given.batches(client, number):
                self.given.step(optimiser, F.cross_entropy(model(x), y))
            self.heard[client] = {
                name: [factor.detach().clone() for factor in model.get_submodule(name).own]
                for name in self.names
            }

    def global_model(self) -> None:
        return None

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        return evaluated(self.own[client], x)
