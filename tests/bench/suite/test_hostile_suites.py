"""Suite files from strangers: planned, or refused in a sentence."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from tests.kit.cli import TINY
from tests.kit.hostile import FUZZ, damaged, damaged_bytes, no_write_outside, outcome

FULL: dict[str, Any] = TINY | {
    "methods": ["fedavg", {"name": "fedprox", "label": "Prox", "set": {"mu": 0.1}}],
    "variants": [{"name": "β=0.1", "set": {"training.rounds": 2}}],
    "table": {"kind": "variants"},
    "attackers": {"kind": "noise", "share": 0.2},
}
TEXT = yaml.safe_dump(FULL, allow_unicode=True).encode()


def plan(content: bytes, kind: str) -> None:
    """Plan the cells of a suite file of this content."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "suite.yaml")
        file.write_bytes(content)
        with no_write_outside(Path(folder)):
            outcome(lambda: plan_cells(load_suite(str(file))), kind)


def as_yaml(content: Any) -> bytes:
    """Also what YAML's own writer refuses, such as halves of characters, as far as bytes can say it."""
    return yaml.dump(content, allow_unicode=True).encode(errors="surrogatepass")


@FUZZ
@given(content=damaged(FULL))
def test_damaged_values(content: Any) -> None:
    plan(as_yaml(content), "suites with damaged values")


@FUZZ
@given(content=damaged_bytes(TEXT) | st.binary(max_size=200))
def test_damaged_bytes(content: bytes) -> None:
    plan(content, "suites with damaged bytes")
