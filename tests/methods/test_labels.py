"""Label smoothing and mixed labels in the clients' cross-entropy, against PyTorch's."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from methods.base import Batch, cross_entropy
from methods.core.batches import Mixed
from methods.core.losses import label_losses
from tests.kit.tiny import draw

LOGITS = torch.randn(3, 6, 4, generator=draw(0))
Y = torch.randint(4, (3, 6), generator=draw(1))
OTHER = torch.randint(4, (3, 6), generator=draw(2))
MASK = torch.tensor([[1.0] * 6, [1.0] * 4 + [0.0] * 2, [1.0] + [0.0] * 5])
SHARE = 0.3


def expected(client: int, smoothing: float, mixed: bool) -> Tensor:
    real = int(MASK[client].sum())
    logits = LOGITS[client, :real]
    own, other = (
        F.cross_entropy(logits, labels[client, :real], label_smoothing=smoothing) for labels in (Y, OTHER)
    )
    return (1 - SHARE) * own + SHARE * other if mixed else own


@pytest.mark.parametrize("mixed", [False, True], ids=["one label", "two labels"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_alone_and_in_a_stack_is_that_of_pytorch(smoothing: float, mixed: bool) -> None:
    def loss(logits: Tensor, y: Tensor, other: Tensor, mask: Tensor) -> Tensor:
        both = Mixed(other, torch.tensor(SHARE)) if mixed else None
        return cross_entropy(logits, Batch(logits, y, mask, stacked=True, mixed=both, smoothing=smoothing))

    wanted = torch.stack([expected(client, smoothing, mixed) for client in range(3)])
    assert torch.allclose(vmap(loss)(LOGITS, Y, OTHER, MASK), wanted, atol=1e-6)
    plain = torch.stack([loss(*parts) for parts in zip(LOGITS, Y, OTHER, MASK, strict=True)])
    assert torch.allclose(plain, wanted, atol=1e-6)
    both = Mixed(OTHER[0], torch.tensor(SHARE)) if mixed else None
    alone = Batch(LOGITS[0], Y[0], mixed=both, smoothing=smoothing)
    assert torch.allclose(cross_entropy(LOGITS[0], alone), wanted[0], atol=1e-6)
    assert torch.allclose(label_losses(LOGITS[0].log_softmax(-1), alone).mean(), wanted[0], atol=1e-6)
