"""Tests give their own sizes and times to a parameter, or subclass; they patch no constants of modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.kit.places import REPOSITORY

ALLOWED = {
    "huggingface_hub.constants.HF_HUB_OFFLINE",  # read from the environment when the library is imported
}


def patched_constants(tree: ast.Module) -> Iterator[str]:
    """Upper-case names that calls of `setattr` or `mock.patch` replace, as they are written there."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(
            ("setattr", "patch", "object")
        ):
            continue
        names = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
        for name in names:
            if isinstance(name, str) and name.rpartition(".")[2].isupper():
                yield name


def test_patched_constants_are_found_however_they_are_written() -> None:
    code = """
monkeypatch.setattr(module, "SECONDS", 1)
monkeypatch.setattr("package.module.KEPT_BYTES", 1)
monkeypatch.setattr(module, "function", "TEXT")
mock.patch.object(module, "MOST", 1)
mock.patch("package.module.LEAST", 1)
monkeypatch.setenv("HOME", "/")
"""
    found = set(patched_constants(ast.parse(code)))
    assert found == {"SECONDS", "package.module.KEPT_BYTES", "MOST", "package.module.LEAST"}


def test_no_test_patches_a_constant() -> None:
    found = {
        (file.relative_to(REPOSITORY).as_posix(), name)
        for file in sorted(Path(REPOSITORY, "tests").rglob("*.py"))
        for name in patched_constants(ast.parse(file.read_text(encoding="utf-8")))
        if name not in ALLOWED
    }
    assert found == set()
