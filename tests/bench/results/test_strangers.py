"""Results and runs of strangers: no path, no code and no markup in them has an effect."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.kit.cli import assert_one_sentence, call_bench, files_below
from tests.kit.hostile import no_write_outside
from tests.kit.without_checksums import without_checksums

EVIL = "</title></script><img src=x onerror=alert(1)>\x1b[2J"
Change = Callable[[list[dict[str, Any]]], object]


def changed(file: Path, folder: Path, change: Change) -> Path:
    """A results file that somebody has written with care: with other values in its lines."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    change(lines)
    folder.mkdir(exist_ok=True)
    copy = folder / file.name
    copy.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return copy


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/b", "javascript:alert(1)//", ".hidden", ""])
def test_a_suite_cannot_be_named_like_a_path(
    results_file: Path, tiny_run: Path, tmp_path: Path, name: str
) -> None:
    file = changed(results_file, tmp_path / "results", lambda lines: lines[0]["suite"].update(name=name))
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    without_checksums(run)
    plan = json.loads((run / "plan.json").read_text())
    plan["suite"]["name"] = name
    (run / "plan.json").write_text(json.dumps(plan))
    with no_write_outside(tmp_path / "nowhere"):
        for command in (
            ("report", file, "--out", tmp_path / "report"),
            ("report", run),
            ("site", file.parent, "--out", tmp_path / "site"),
            ("submit", run, "--results", tmp_path / "submitted", "--force"),
            ("compare", run, tiny_run),
            ("watch", run, "--once"),
        ):
            assert_one_sentence(call_bench(*command), "suite.name", "it names a folder")


@pytest.mark.parametrize("directory", ["../../elsewhere", "/etc", "cells/../../x", "C:\\x", "..\\x"])
def test_cells_cannot_lie_outside_the_run(tiny_run: Path, tmp_path: Path, directory: str) -> None:
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    without_checksums(run)
    plan = json.loads((run / "plan.json").read_text())
    plan["cells"][0]["dir"] = directory
    (run / "plan.json").write_text(json.dumps(plan))
    assert_one_sentence(call_bench("report", run), "cells.0.dir", "leads out of the folder")


@pytest.mark.parametrize("command", [("site",), ("verify", "--cells", "9"), ("report",)])
def test_a_method_that_is_a_file_is_not_executed(
    results_file: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    code = tmp_path / "results" / "evil.py"
    file = changed(
        results_file,
        tmp_path / "results",
        lambda lines: lines[1]["config"]["method"].update(name=str(code), source=None),
    )
    code.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'executed')!r}).touch()\n")
    target = file.parent if command[0] == "site" else file
    outcome = call_bench(command[0], target, *command[1:])
    assert_one_sentence(outcome, "method.name", "it is not the name of a method")
    assert not (tmp_path / "executed").exists()


def test_a_model_that_is_a_file_is_executed_only_if_trusted(results_file: Path, tmp_path: Path) -> None:
    code = tmp_path / "model.py"
    code.write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'executed')!r}).touch()\n"
        "from torch import nn\n"
        "def model(shape, classes): return nn.Sequential(nn.Flatten(), nn.Linear(3072, classes))\n"
    )

    def as_file(lines: list[dict[str, Any]]) -> None:
        from bench.config.cell import identity
        from bench.records.results_file import CellLine

        del lines[2:]
        lines[1]["config"]["model"] = {"name": "file", "path": str(code)}
        lines[1]["cell"] = lines[1]["result"]["cell"] = identity(lines[1]["config"])
        lines[1]["digest"] = CellLine.model_validate(lines[1]).own_digest()

    file = changed(results_file, tmp_path / "results", as_file)
    outcome = call_bench("verify", file)
    assert_one_sentence(outcome, f"its model is the Python file {code}", "--trust-code")
    assert not (tmp_path / "executed").exists()
    assert call_bench("verify", file, "--trust-code").code == 1  # computed again, with another outcome
    assert (tmp_path / "executed").exists()


def test_a_file_cannot_set_its_own_tolerance(results_file: Path, tmp_path: Path) -> None:
    for generous in (1e9, float("inf"), float("nan"), -1):

        def claim(lines: list[dict[str, Any]], sd: float = generous) -> None:
            lines[0]["rerun_sd"] = sd

        file = changed(results_file, tmp_path, claim)
        assert_one_sentence(call_bench("verify", file), "damaged at line 1", "rerun_sd")


class Elements(HTMLParser):
    """The elements of a page that could act."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.suspects: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag == "script":
            self.scripts.append(values.get("src"))
        addresses = [values.get("href") or "", values.get("src") or ""]
        bad = any(name.startswith("on") for name in values) or any("script:" in each for each in addresses)
        if bad or (tag == "img" and values.get("src") == "x"):
            self.suspects.append(self.get_starttag_text() or "")


def test_pages_show_texts_of_strangers_as_text(results_file: Path, tmp_path: Path) -> None:
    def dress_up(lines: list[dict[str, Any]]) -> None:
        lines[0]["suite"]["title"] = EVIL
        origin = next(iter(lines[0]["origins"].values()))
        origin["set"] = {EVIL: EVIL}
        origin["tuning"] = {"trials": f"1; {EVIL}", "methods": {"fedavg": {"set": {EVIL: EVIL}}}}
        for line in lines[1:]:
            line["origin"] = next(iter(lines[0]["origins"]))
            line["label"] = f"{EVIL} {line['label']}"
            line["result"]["provenance"] |= {"commit": EVIL, "executor": EVIL, "data_notes": [EVIL]}

    file = changed(results_file, tmp_path / "results", dress_up)
    site = tmp_path / "site"
    outcome = call_bench("site", file.parent, "--out", site)
    assert outcome.code == 0 and "\x1b" not in outcome.out + outcome.err
    pages = list(site.rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        text = page.read_text(encoding="utf-8")
        found = Elements()
        found.feed(text)
        assert found.suspects == [], page
        assert len(found.scripts) == (2 if page.name == "report.html" else 1), page
    suite = (site / "suites" / "tiny.html").read_text(encoding="utf-8")
    assert "&lt;img src=x onerror=alert(1)&gt;" in suite
    assert "bench study" not in suite, "a command to copy must not hold a stranger's words"


def test_tables_of_strangers_neither_compute_nor_command(results_file: Path, tmp_path: Path) -> None:
    labels = ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\t=1", "\\input{/etc/passwd}\nTwo \x1b[2J | lines"]

    def rename(lines: list[dict[str, Any]]) -> None:
        for line, label in zip(lines[1:], labels, strict=True):
            line["label"] = label

    file = changed(results_file, tmp_path, rename)
    outcome = call_bench("report", file, "--out", tmp_path / "report", "--format", "md,latex,csv")
    assert outcome.code == 0 and "\x1b" not in outcome.out
    folder = tmp_path / "report" / "tables"
    rows = (folder / "tiny.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert {row.split(",")[4].strip('"') for row in rows} >= {f"'{label}" for label in labels[:4]}
    assert not any(row.split(",")[4].strip('" ').startswith(("=", "+", "-", "@")) for row in rows)
    tex, md = ((folder / f"tiny.{kind}").read_text(encoding="utf-8") for kind in ("tex", "md"))
    assert "\\input" not in tex and r"\textbackslash{}input\{/etc/passwd\} Two  {[}2J" in tex
    assert all("\x1b" not in text and "\nTwo" not in text for text in (tex, md))


def test_a_report_leaves_stores_and_links_of_others_alone(tiny_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(tiny_run, tmp_path / "runs" / "tiny"))
    outside = tmp_path / "outside"
    outside.mkdir()
    store = f"sqlite:///{outside}/theirs.db"
    (run / "mlflow.json").write_text(json.dumps({"uri": store, "run_id": "0", "sha256": "0"}))
    outcome = call_bench("report", run, "--format", "md")
    assert outcome.code == 0 and f"the tables in MLflow at {store} stay as they are" in outcome.out
    shutil.rmtree(run / "tables")
    (run / "tables").symlink_to(outside)
    assert_one_sentence(call_bench("report", run, "--format", "md"), "tables is a link to", "remove it")
    assert files_below(outside) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"suite": ' * 50 + b"1" + b"}" * 50, "nested too deeply"),
        (b'{"a": "\\ud800"}', "half a character"),
        (b'{"a": 1' + b"0" * 400 + b"}", "too large"),
        (b'{"a": 1' + b"0" * 9000 + b"}", "damaged at line 1"),
        (b"\xff\xfe{}", "damaged at line 1"),
        (b"null", "damaged at line 1"),
    ],
)
def test_json_made_to_break_its_reader(tmp_path: Path, text: bytes, expected: str) -> None:
    (tmp_path / "tiny.jsonl").write_bytes(text)
    assert_one_sentence(call_bench("report", tmp_path / "tiny.jsonl", "--out", tmp_path / "out"), expected)
    run = tmp_path / "run"
    run.mkdir()
    (run / "plan.json").write_bytes(text)
    assert call_bench("report", run).code == 2


def test_rounds_cannot_be_claimed_by_the_billion(results_file: Path, tmp_path: Path) -> None:
    file = changed(results_file, tmp_path, lambda lines: lines[1]["rounds"].update(round="1-99999999999999"))
    assert_one_sentence(call_bench("verify", file, "--cells", "0"), "the rounds of cell", "are damaged")
