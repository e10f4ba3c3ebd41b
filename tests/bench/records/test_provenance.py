"""The commit that a result names, in real checkouts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.records import provenance


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one method, which provenance takes for its own."""
    for file in ("methods/one.py", "README.md", "bench/records/provenance.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("first\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *command], check=True)
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "bench" / "records" / "provenance.py"))
    monkeypatch.setattr(provenance, "commit", provenance.commit.__wrapped__)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "sign"),
    [
        (None, ""),
        ("methods/one.py", "+"),
        ("methods/new.py", "+"),
        ("notes.txt", ""),
        ("runs/quickstart/plan.json", ""),
    ],
)
def test_code_that_the_commit_does_not_hold_is_marked(checkout: Path, file: str | None, sign: str) -> None:
    if file is not None:
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        (checkout / file).write_text("second\n")
    head = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout
    assert provenance.commit() == head[:12] + sign


def test_outside_a_checkout_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "bench" / "records" / "provenance.py"))
    assert provenance.commit.__wrapped__() == ""
