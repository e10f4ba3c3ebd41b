"""FedSDG as one would write it by hand, for `bench speed`: one module, one torch optimiser per client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from methods.core.batches import Samples
from methods.fedsdg import FedSDG
from methods.modules.lora import PRIVATE, blocks_of, first_factor, lora_layers
from methods.modules.split_model import SplitModel

if TYPE_CHECKING:
    from bench.speed.compare import Work


def plain_loop(work: Work, model: SplitModel, clients: list[Samples]) -> Callable[[int], None]:
    method, settings = work.method, work.optimiser
    assert isinstance(method, FedSDG)
    clip_norm = settings.clip_norm or float("inf")
    shared = [leaf for leaf in model.parameters() if leaf.requires_grad]
    layers = lora_layers(model)
    blocks = blocks_of(layers)
    gates = nn.Parameter(torch.zeros(1 + max(blocks.values())))
    private, gated = [], []
    for name, layer in layers.items():
        first = nn.Parameter(first_factor(layer.r[PRIVATE], layer.in_features))
        second = nn.Parameter(torch.zeros(layer.out_features, layer.r[PRIVATE]))
        layer.lora_A[PRIVATE].weight = first
        del layer.lora_B[PRIVATE].weight  # so that it can be set to something computed
        private += [first, second]
        gated.append((layer.lora_B[PRIVATE], second, blocks[name]))
    server = [leaf.detach().clone() for leaf in shared]
    own = [[leaf.detach().clone() for leaf in (*private, gates)] for _ in clients]

    def train(client: Samples) -> None:
        groups = [
            {"params": shared, "lr": settings.lr},
            {"params": private, "lr": method.private_lr},
            {"params": [gates], "lr": method.gate_lr},
        ]
        optimiser = torch.optim.Adam(groups)
        for _ in range(work.epochs):
            for at in torch.randperm(len(client.y)).split(work.batch_size):
                optimiser.zero_grad()
                m = gates.sigmoid()
                for place, second, block in gated:
                    place.weight = m[block] * second
                size = torch.stack([leaf.square().sum() for leaf in private]).sum()
                loss = nn.functional.cross_entropy(model(client.x[at]), client.y[at])
                (loss + method.lam1 * m.sum() + method.lam2 * size).backward()
                nn.utils.clip_grad_norm_([*shared, *private, gates], clip_norm)
                optimiser.step()

    def advance(rounds: int) -> None:
        for _ in range(rounds):
            updates = []
            for k, client in enumerate(clients):
                _set([*shared, *private, gates], [*server, *own[k]])
                train(client)
                own[k] = [leaf.detach().clone() for leaf in (*private, gates)]
                updates.append(
                    torch.cat([(y - x).flatten() for y, x in zip(shared, server, strict=True)]).detach()
                )
            mean = torch.stack(updates).mean(dim=0)
            alpha = torch.stack([torch.cosine_similarity(update, mean, dim=0) for update in updates]).relu()
            step = sum(weight * update for weight, update in zip(alpha / alpha.sum(), updates, strict=True))
            assert isinstance(step, Tensor)
            parts = step.split([leaf.numel() for leaf in server])
            server[:] = [leaf + part.view_as(leaf) for leaf, part in zip(server, parts, strict=True)]

    return advance


def _set(leaves: list[nn.Parameter], values: list[Tensor]) -> None:
    with torch.no_grad():
        for leaf, value in zip(leaves, values, strict=True):
            leaf.copy_(value)
