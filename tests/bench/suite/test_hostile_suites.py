"""Suite files from strangers: planned, or refused in a sentence."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from tests.kit.cli import TINY, assert_one_sentence, call_bench, write_suite
from tests.kit.hostile import FUZZ, damaged, damaged_bytes, no_write_outside, outcome

FULL: dict[str, Any] = TINY | {
    "methods": ["fedavg", {"name": "fedprox", "label": "Prox", "set": {"mu": 0.1}}],
    "variants": [{"name": "β=0.1", "set": {"training.rounds": 2}}],
    "table": {"kind": "variants"},
    "attackers": {"kind": "noise", "share": 0.2},
}
TEXT = yaml.safe_dump(FULL, allow_unicode=True).encode()


def plan(content: bytes, kind: str) -> str:
    """What becomes of a suite file of this content."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "suite.yaml")
        file.write_bytes(content)
        with no_write_outside(Path(folder)):
            return outcome(lambda: plan_cells(load_suite(str(file))), kind)


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


def test_the_undamaged_one_is_planned() -> None:
    assert plan(TEXT, "undamaged suite") == "read"


BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in pairwise("abcdefghij")
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOMB, "aliases stand for more than 100000 values"),
        ("suite: &a [*a]", "contains itself"),
        ("suite: " + "[" * 60 + "]" * 60, "nested too deeply"),
        ("suite: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("suite: !!python/object/apply:os.system ['true']", "the tag 'tag:yaml.org,2002:python/object"),
        ("suite: !!timestamp nonsense", "the tag"),
        ("suite: ! x", "the tag '!' is not allowed"),
        ("seeds: 2025-13-45", "not valid YAML"),
        ("suite: a\nsuite: b", "the key 'suite' is given twice"),
        ("x: " + "y" * 1_000_001, "at most 1000000 are read"),
        ("suite: \x1b[2J", "not valid YAML"),
    ],
)
def test_yaml_made_to_break_its_reader(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    outcome = call_bench("run", "--suite", file, "--out", tmp_path / "runs")
    assert_one_sentence(outcome, expected)
    assert len(outcome.err) < 1000


def test_aliases_that_save_typing_are_fine(tmp_path: Path) -> None:
    file = write_suite(tmp_path)
    file.write_text(
        file.read_text() + "variants:\n- {name: a, set: &s {training.epochs: 2}}\n- {name: b, set: *s}\n"
    )
    assert len(load_suite(str(file)).variants) == 2


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"suite": "../outside"}, "it names a folder"),
        ({"suite": "x" * 300}, "at most 100 characters"),
        ({"seeds": 10**12}, "less than or equal to 10000"),
        ({"title": "y" * 5000 + "\x1b", "methods": 3}, "give a list"),
    ],
)
def test_values_that_no_suite_needs(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(yaml.safe_dump(TINY | changes), encoding="utf-8")
    outcome = call_bench("run", "--suite", file, "--out", tmp_path / "runs")
    assert_one_sentence(outcome, expected)
    assert len(outcome.err) < 1000 and not (tmp_path / "runs").exists()
