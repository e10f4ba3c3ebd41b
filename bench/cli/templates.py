"""The texts of the files that `bench new` writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import methods


@dataclass(frozen=True)
class Template:
    """A file with NAME and CLASS to be filled in."""

    ending: str
    text: str
    next_step: str
    """With FILE for the path of the file."""

    def filled(self, name: str) -> str:
        return self.text.replace("NAME", name).replace("CLASS", class_name(name))


def class_name(name: str) -> str:
    """my_method → MyMethod."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or name


ABOUT_METHOD = '''"""CLASS: FedAvg with a pull of the client's model towards the server's.

This is FedProx, to be changed. Say here what the method does, which paper and equations it follows, and where
it departs from them. `label` is the name in tables, `neutral` the setting at which the method is FedAvg.
"""'''


def method_text() -> str:
    """The file of FedProx under another name, so that the first method to copy is one that is tested."""
    file = Path(methods.__file__ or "").with_name("fedprox.py")
    _, _, code = file.read_text(encoding="utf-8").split('"""', maxsplit=2)
    return ABOUT_METHOD + code.replace("FedProx", "CLASS")


METHOD = Template(
    ".py",
    method_text(),
    "bench check FILE, then bench run --suite quickstart_cnn --methods fedavg,FILE; to tune it, bench tune "
    "--suite quickstart_cnn --methods FILE (bench new space FILE writes down what is searched)",
)

DATASET = Template(
    ".py",
    '''"""NAME: two domains of noisy points, as a start for a dataset of your own."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.data.base import DatasetSpec, Split, TrainTest


class CLASS(DatasetSpec):
    """Fields of this class are options that a suite can set, such as `dataset: {name: NAME, noise: 0.2}`."""

    noise: float = 0.5

    classes: ClassVar[tuple[str, ...]] = ("left", "middle", "right")
    counts: ClassVar[Mapping[str, tuple[int, int] | None]] = {"near": (300, 90), "far": (300, 90)}
    """Domain → sizes of its training and its test set."""

    def fingerprint(self, root: Path | None) -> str:
        # must change when the user's files below `root` change; there are none here
        return "built in"

    def build(self, root: Path | None, domain: str) -> TrainTest:
        # x: float32 (samples, features), or uint8 (samples, 3, height, width) for images; y: int64
        draw = np.random.default_rng(list(self.counts).index(domain))
        train, test = self.counts[domain] or (0, 0)
        return TrainTest(self._points(draw, train, domain), self._points(draw, test, domain))

    def _points(self, draw: np.random.Generator, count: int, domain: str) -> Split:
        y = np.arange(count, dtype=np.int64) % len(self.classes)
        x = np.eye(len(self.classes), 8)[y] + (1.0 if domain == "far" else 0.0)
        return Split((x + self.noise * draw.normal(size=x.shape)).astype(np.float32), y)
''',
    "put it into bench/data/datasets/, or declare it as NAME among the entry points 'bench.datasets' of your "
    "package; then bench data check NAME",
)

SUITE = Template(
    ".yaml",
    """suite: NAME
version: 1  # raise it when you change anything below
title: Built-in digits, four domains, four clients
dataset: {name: digits_mini}  # see: bench list datasets
partition: {name: by_domain, clients: 4, samples: 120}
model: {name: mlp, hidden: 64}  # see: bench list models
training:
  rounds: 10
  epochs: 1
  batch_size: 32
  optimiser: {name: sgd, lr: 0.05}
evaluation: {every: 5}
methods:  # see: bench list methods; a file of your own is a method too: ./my_method.py
  - fedavg
  - {name: fedprox, set: {mu: 0.1}}
seeds: 2
table: {kind: domains}
""",
    "bench run --suite FILE --dry-run",
)
