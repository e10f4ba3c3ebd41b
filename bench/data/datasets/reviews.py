"""Reviews (FDU-MTL): are they positive? 14 kinds of products and two collections of film reviews.

Liu, Qiu and Huang, "Adversarial Multi-task Learning for Text Classification", ACL 2017. A line is a label (0
or 1), a tab and a text, tokenised and in lower case. Train is the paper's train and development set
together; test are its 400 reviews per domain. Most files are UTF-8; lines that are not are read as
Windows-1252, in which the reviews of `mr` were written. One review of `sports` is empty, and is kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field

from bench.data.base import DatasetSpec, Limit, Split, TrainTest, distinct
from bench.data.image_folders import find_source, source_place
from bench.data.language_models import MINILM, vocabulary_digest
from bench.data.sources import Source, fingerprint, open_source
from bench.data.tokens import tokenised
from bench.errors import UserError

Domain = Literal[
    "books",
    "electronics",
    "dvd",
    "kitchen",
    "apparel",
    "camera",
    "health",
    "music",
    "toys",
    "video",
    "baby",
    "magazines",
    "software",
    "sports",
    "imdb",
    "mr",
]


class Reviews(DatasetSpec):
    domains: Annotated[tuple[Domain, ...], AfterValidator(distinct)] | None = Field(
        default=None, min_length=1, exclude_if=lambda domains: domains is None
    )
    """The domains to use, in this order; None: all of them."""
    limit: Limit = None
    tokens: int = Field(default=64, ge=4, le=512)
    """Length of a review in tokens, start and end mark included; longer ones are cut off, others padded."""
    tokenizer: str = Field(default=MINILM, min_length=1, exclude_if=lambda name: name == MINILM)
    """Whose tokens: `minilm`, or the folder or hub name of the language model that is to read them."""

    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")
    counts: ClassVar[dict[str, tuple[int, int] | None]] = {
        "books": (1600, 400),
        "electronics": (1598, 400),
        "dvd": (1600, 400),
        "kitchen": (1600, 400),
        "apparel": (1600, 400),
        "camera": (1597, 400),
        "health": (1600, 400),
        "music": (1600, 400),
        "toys": (1600, 400),
        "video": (1600, 400),
        "baby": (1500, 400),
        "magazines": (1570, 400),
        "software": (1515, 400),
        "sports": (1600, 400),
        "imdb": (1600, 400),
        "mr": (1600, 400),
    }
    stems: ClassVar[tuple[str, ...]] = ("reviews", "fdu_mtl", "fdu_mtl_reviews", "mtl-dataset")
    files: ClassVar[dict[str, str]] = {
        "kitchen": "kitchen_housewares",
        "camera": "camera_photo",
        "health": "health_personal_care",
        "toys": "toys_games",
        "sports": "sports_outdoors",
    }
    """Domain → the name its files have, where that is a longer one."""
    origin: ClassVar[str] = (
        "put the FDU-MTL reviews there as reviews/ or reviews.zip with DOMAIN.task.train and "
        "DOMAIN.task.test inside, or run `bench data import reviews PATH`"
    )

    def domain_names(self) -> tuple[str, ...]:
        return self.domains or tuple(self.counts)

    def present_domains(self, root: Path | None) -> tuple[str, ...]:
        source = self._source(root)
        return tuple(domain for domain in self.counts if None not in self._members(source, domain))

    def place_of(self, path: Path) -> Path:
        return source_place(path, self.stems[0])

    def vocabulary(self) -> str:
        return vocabulary_digest(self.tokenizer)

    def fingerprint(self, root: Path | None) -> str:
        return f"{fingerprint([find_source(root, self.stems, self.origin)])} {self.vocabulary()}"

    def build(self, root: Path | None, domain: str) -> TrainTest:
        source = self._source(root)
        return TrainTest(*(self._split(source, domain, member) for member in self._members(source, domain)))

    def _source(self, root: Path | None) -> Source:
        return open_source(find_source(root, self.stems, self.origin))

    def _members(self, source: Source, domain: str) -> tuple[str | None, str | None]:
        """The domain's files of train and test; None for one that is missing."""
        stem = self.files.get(domain, domain)
        known = {name.rpartition("/")[2].lower(): name for name in source.names}
        return known.get(f"{stem}.task.train"), known.get(f"{stem}.task.test")

    def _split(self, source: Source, domain: str, member: str | None) -> Split:
        if member is None:
            raise UserError(f"domain '{domain}' in {source.path} lacks a file; {self.origin}")
        labels, texts = [], []
        # Only \n ends a line: some texts hold other characters that Python takes for line ends.
        for number, line in enumerate(source.read(member).split(b"\n"), 1):
            label, tab, text = line.rstrip(b"\r").partition(b"\t")
            if not line.strip():
                continue
            if label not in (b"0", b"1") or not tab:
                raise UserError(
                    f"{member} in {source.path}, line {number}: it must be 0 or 1, a tab and a text; "
                    "get the file again"
                )
            labels.append(int(label))
            texts.append(_decoded(text))
        if not texts:
            raise UserError(f"{member} in {source.path} holds no reviews; get the file again")
        y = np.array(labels, np.int64)
        kept = Split(np.arange(len(y)), y).thinned(self.limit)  # before tokenising, which takes the time
        return Split(tokenised([texts[at] for at in kept.x], self.tokenizer, self.tokens), kept.y)


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("windows-1252", errors="replace")
