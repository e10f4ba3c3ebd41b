"""What the guides show is what the project runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bench
from bench.cli.templates import METHOD
from bench.contract.rules import RULES
from search_spaces.spaces import load_space
from tests.kit.places import REPOSITORY

FEDPROX = (REPOSITORY / "methods" / "fedprox.py").read_text(encoding="utf-8")


def guide(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    """The Python code between the fences of a page."""
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def after_docstring(text: str) -> str:
    return text.split('"""', maxsplit=2)[2]


def test_the_readme_shows_the_file_of_fedprox() -> None:
    assert FEDPROX in blocks(guide("README.md"))


def test_a_new_method_is_fedprox_under_another_name() -> None:
    written = METHOD.filled("fed_prox")
    assert after_docstring(written) == after_docstring(FEDPROX)
    assert written.startswith('"""FedProx: ')
    assert "CLASS" not in written and "NAME" not in written


def test_the_method_in_the_guide_passes_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    (text,) = [block for block in blocks(guide("CONTRIBUTING.md")) if "(FedAvg)" in block]
    file = tmp_path / "small_features.py"
    file.write_text(text, encoding="utf-8")
    report = bench.check(str(file))
    assert report.passed, str(report)


def test_the_search_space_in_the_guide_is_one_of_the_method_in_the_guide(tmp_path: Path) -> None:
    page = guide("CONTRIBUTING.md")
    (code,) = [block for block in blocks(page) if "(FedAvg)" in block]
    (space,) = [
        block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "log_uniform" in block
    ]
    (tmp_path / "small_features.py").write_text(code, encoding="utf-8")
    (tmp_path / "small_features.yaml").write_text(space, encoding="utf-8")
    assert load_space(str(tmp_path / "small_features.py")).hyperparameters["lam"].paper == (0.01, 0.1)


def test_every_rule_refers_to_a_heading_of_the_guide() -> None:
    headings = set(re.findall(r"^### (.*)$", guide("CONTRIBUTING.md"), re.MULTILINE))
    assert {rule.section for rule in RULES} <= headings
