"""Learn the weights of `vit_mini` on rendered font digits and write them to bench/models/weights/.

    python scripts/pretrain_vit_mini.py

Takes some minutes of one core. The same version of torch on the same kind of machine gives the same file; its
checksum, which is printed, belongs into bench/models/architectures/vit_mini.py. The digits of Matplotlib's
fonts are drawn again for every step, first light on dark, then more and more in colours and over texture.
No image of any dataset is seen.
"""

import hashlib
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from bench.data.glyphs import digit_masks
from bench.models.architectures.vit_mini import WEIGHTS
from bench.models.base import Pixels
from bench.models.vit import small_vit

SIDE = 32
STEPS = 6000
PLAIN_STEPS, MIXED_STEPS = 2000, 4000
"""Until then all digits are light on dark; from then on half of them are not."""
BATCH = 32
PEAK_RATE = 3e-3
WARM_UP = 50
WEIGHT_DECAY = 0.01

HEIGHT = (18, 28)  # pixels, of 32
WIDTH = (0.8, 1.25)  # times that of the font
ROTATION = 0.35  # radians, either way
SLANT = 0.3
SHIFT = 0.2  # of half the side, either way
CONTRAST = 0.25  # least mean distance between the colours of digit and ground
TEXTURE = 0.3
NOISE = 0.05


def rendered(masks: Tensor, count: int, mixed: float) -> tuple[Tensor, Tensor]:
    """Random digits as bytes, and their labels; a share `mixed` of them is coloured, and textured."""
    y = torch.randint(0, 10, (count,))
    shapes = masks[torch.randint(0, len(masks), (count,)), y][:, None]
    grid = F.affine_grid(_placements(count), [count, 1, SIDE, SIDE], align_corners=False)
    coverage = F.grid_sample(shapes, grid, align_corners=False)
    ground, ink = _colours(count)
    coloured, textured = (torch.rand(2, count, 1, 1, 1) < mixed).float()
    ground = coloured * ground
    ink = coloured * ink + (1 - coloured) * _between(0.7, 1, count, 1, 1, 1)
    texture = F.interpolate(torch.rand(count, 3, 6, 6) - 0.5, size=SIDE, mode="bilinear")
    ground = (ground + 2 * TEXTURE * textured * texture).clamp(0, 1)
    x = ground * (1 - coverage) + ink * coverage + NOISE * coloured * torch.randn(count, 3, SIDE, SIDE)
    return (255 * x.clamp(0, 1)).to(torch.uint8), y


def _placements(count: int) -> Tensor:
    """From a place in the image to the place in the mask that is drawn there."""
    angle, slant = _between(-ROTATION, ROTATION, count), _between(-SLANT, SLANT, count)
    across, down = SIDE / _between(*HEIGHT, count) / _between(*WIDTH, count), SIDE / _between(*HEIGHT, count)
    cos, sin = torch.cos(angle), torch.sin(angle)
    rows = [across * (cos - slant * sin), across * (sin + slant * cos), -down * sin, down * cos]
    turn = torch.stack(rows, dim=1).view(count, 2, 2)
    return torch.cat([turn, turn @ _between(-SHIFT, SHIFT, count, 2, 1)], dim=2)


def _colours(count: int) -> tuple[Tensor, Tensor]:
    """Of ground and ink; an ink too close to its ground is replaced by the opposite one."""
    ground, ink = torch.rand(2, count, 3, 1, 1)
    far = (ground - ink).abs().mean(dim=1, keepdim=True) >= CONTRAST
    return ground, torch.where(far, ink, (ground + 0.5) % 1)


def _between(low: float, high: float, *shape: int) -> Tensor:
    return low + (high - low) * torch.rand(*shape)


def pretrained() -> nn.Module:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    masks = torch.from_numpy(digit_masks(48)).float() / 255
    vit = small_vit()
    model = nn.Sequential(Pixels(), vit, nn.Linear(vit.num_features, 10))
    optimiser = torch.optim.AdamW(model.parameters(), PEAK_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * step / STEPS)) / 2
    )
    hits = []
    for step in range(STEPS):
        mixed = 0.5 * min(1.0, max(0.0, (step - PLAIN_STEPS) / (MIXED_STEPS - PLAIN_STEPS)))
        x, y = rendered(masks, BATCH, mixed)
        logits = model(x)
        optimiser.zero_grad()
        F.cross_entropy(logits, y).backward()
        optimiser.step()
        schedule.step()
        hits.append((logits.argmax(dim=1) == y).float().mean())
        if (step + 1) % 500 == 0:
            print(f"step {step + 1}: {torch.stack(hits[-500:]).mean():.3f} of new digits right", flush=True)
    return vit


def write(model: nn.Module, file: Path) -> str:
    """Half precision; returns the checksum."""
    file.parent.mkdir(exist_ok=True)
    draft = file.with_suffix(".draft")
    save_file({name: leaf.half().contiguous() for name, leaf in model.state_dict().items()}, draft)
    draft.replace(file)
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    print(write(pretrained(), WEIGHTS))
