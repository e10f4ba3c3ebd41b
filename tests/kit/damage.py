"""Bytes damaged at random, as by a failing disk."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.errors import UserError
from bench.text import one_line

T = TypeVar("T")
MOST = 16
"""Bytes in one piece."""


def damage(file: Path, draw: random.Random) -> None:
    """Change a bit, or a few bytes in one piece."""
    before = file.read_bytes()
    data = bytearray(before)
    place = draw.randrange(len(data))
    while bytes(data) == before:
        if draw.random() < 0.5:
            data[place] ^= 1 << draw.randrange(8)
        else:
            length = min(draw.randint(1, MOST), len(data) - place)
            data[place : place + length] = draw.randbytes(length)
    file.write_bytes(data)


def damage_one(files: list[Path], draw: random.Random) -> Path:
    """Damage one of these files that holds something, and return it."""
    file = draw.choice([each for each in files if each.stat().st_size])
    damage(file, draw)
    return file


class Outcomes:
    """What became of damaged files: `equal` or `said`; anything else fails."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def judge(self, act: Callable[[], T], expected: T, *named: Path) -> None:
        """The act gives what is expected, or says in a sentence which of these files is damaged."""
        try:
            found = act()
        except UserError as error:
            text = one_line(str(error))
            assert any(str(file) in text for file in named), text
            assert ";" in text, f"it does not say what to do: {text}"
            self.counts["said"] += 1
        else:
            assert found == expected, "damage went unnoticed"
            self.counts["equal"] += 1

    @property
    def total(self) -> int:
        return self.counts.total()

    def __str__(self) -> str:
        parts = {
            "equal": "results equal",
            "said": "ended in a one-line error that names the file",
        }
        return ", ".join(f"{self.counts[key]} {words}" for key, words in parts.items() if self.counts[key])
