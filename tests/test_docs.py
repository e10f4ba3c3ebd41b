"""ARCHITECTURE.md and the pages of decisions: complete, and true to the files of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kit.places import REPOSITORY

DECISIONS = REPOSITORY / "docs" / "decisions"
INDEX = DECISIONS / "README.md"
PAGES = sorted(page for page in DECISIONS.glob("*.md") if page != INDEX)
DOCUMENTS = [REPOSITORY / "ARCHITECTURE.md", INDEX, *PAGES]

FOLDERS = ("bench", "docs", "examples", "methods", "reports", "results", "scripts", "search_spaces", "tests")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(rf"(?P<file>(?:{'|'.join(FOLDERS)})/[\w./+-]*)(?:::(?P<name>\w+))?")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def page_name(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def is_there(path: str) -> bool:
    """Whether the repository has such a file; capitals, as in results/SUITE.jsonl, stand for any name."""
    return any(REPOSITORY.glob(re.sub(r"\b[A-Z]{2,}\b", "*", path.rstrip("/"))))


def defines(path: str, name: str) -> bool:
    source = (REPOSITORY / path).read_text(encoding="utf-8")
    return re.search(rf"^\s*(?:(?:async )?def|class) {name}\b|^{name}\b.*=", source, re.M) is not None


def problems(text: str) -> list[str]:
    """Paths in backticks, such as `bench/errors.py` or `bench/errors.py::UserError`, that lead nowhere."""
    found = []
    for match in filter(None, map(PATH.fullmatch, CODE.findall(text))):
        file, name = match["file"], match["name"]
        if not is_there(file) or (name is not None and not defines(file, name)):
            found.append(match[0])
    return found


@pytest.mark.parametrize("page", DOCUMENTS, ids=page_name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert problems(text) == []
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def test_a_path_that_leads_nowhere_is_found() -> None:
    text = "`bench/errors.py`, `bench/gone.py`, `results/SUITE.jsonl`, `bench/errors.py::Gone`, `bench run`"
    assert problems(text) == ["bench/gone.py", "bench/errors.py::Gone"]


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(page.name[:3]) for page in PAGES] == list(range(1, len(PAGES) + 1))


def test_the_index_lists_every_decision_with_its_title() -> None:
    listed = re.findall(r"^\| (\d{3}) \| \[(.+)\]\((.+)\) \|$", INDEX.read_text(encoding="utf-8"), re.M)
    titles = [page.read_text(encoding="utf-8").splitlines()[0] for page in PAGES]
    assert [name for _, _, name in listed] == [page.name for page in PAGES]
    assert [f"# {int(number)}. {title}" for number, title, _ in listed] == titles
    assert all(name.startswith(f"{number}-") for number, _, name in listed)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_a_decision_has_context_decision_and_consequences(page: Path) -> None:
    parts = re.findall(r"^\*\*(\w+)\.\*\* \S", page.read_text(encoding="utf-8"), re.M)
    assert parts == ["Context", "Decision", "Consequences"]
