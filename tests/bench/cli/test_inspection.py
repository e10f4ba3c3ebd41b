"""`bench list`, `bench show`, `bench report` and `--dry-run`."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.data import dataset_names
from bench.encoders import encoder_summaries
from bench.models import MODELS
from bench.suite.loading import load_suite, suite_names
from bench.suite.methods import METHODS, WRAPPERS
from tests.kit.cli import assert_one_sentence, call_bench, write_suite
from tests.kit.run_folders import Planned, write_run
from tests.kit.sweeps import two_keys


def printed(*arguments: object) -> str:
    outcome = call_bench(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder, with a name that a terminal library may take for markup, that holds one finished run."""
    root = tmp_path / "runs [old]"
    cells = [Planned("fedavg", 0, (0.5, 0.25)), Planned("fedprox", 0, (0.75, 0.5)), Planned("fedprox", 1)]
    run = write_run(root / "quickstart", cells)
    for cell, digits in zip(cells[:2], ("aa11", "aa22"), strict=True):
        (run / cell.dir).rename(run / "cells" / f"{cell.method}-s{cell.seed}-{digits}")
    plan = json.loads((run / "plan.json").read_text())
    for entry, digits in zip(plan["cells"], ("aa11", "aa22", "bb33"), strict=True):
        entry["dir"] = f"cells/{entry['method']}-s{entry['seed']}-{digits}"
    (run / "plan.json").write_text(json.dumps(plan))
    return root


def test_the_version_is_told_and_python_can_run_the_package() -> None:
    declared = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["version"]
    assert printed("--version") == f"bench {declared}\n"
    as_module = subprocess.run(
        [sys.executable, "-m", "bench", "--version"], capture_output=True, text=True, check=True
    )
    assert as_module.stdout == f"bench {declared}\n"


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("suites", suite_names()),
        ("methods", [*METHODS.names(), *(f"{name}+METHOD" for name in WRAPPERS.names())]),
        ("datasets", dataset_names()),
        ("models", MODELS.names()),
        ("encoders", list(encoder_summaries())),
    ],
)
def test_a_list_has_a_line_with_a_summary_for_each(kind: str, names: list[str]) -> None:
    lines = {line.split()[0]: line for line in printed("list", kind).splitlines()}
    assert list(lines) == names
    for name, line in lines.items():
        assert len(line.removeprefix(name).split()) >= 3, f"{name} has no summary"


def test_runs_are_listed_with_what_they_have_done(runs: Path, tmp_path: Path) -> None:
    (line,) = printed("list", "runs", "--runs", runs).splitlines()
    assert line.startswith(str(runs / "quickstart"))
    assert "Digits, two domains: 2 of 3 cells done" in line
    assert "no runs" in printed("list", "runs", "--runs", tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["{", "", "[]", '{"cells": []}', '{"cells": [{}], "suite": {"title": ""}}'])
def test_a_damaged_run_is_listed_as_such_among_the_others(
    runs: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = runs / "another" / "plan.json"
    plan.parent.mkdir()
    plan.write_text(text)
    monkeypatch.chdir(runs.parent)  # short paths, so that a run fits into a line
    damaged, whole = printed("list", "runs", "--runs", runs.name).splitlines()
    assert damaged.startswith(f"{runs.name}/another") and "damaged: plan.json cannot be read" in damaged
    assert whole.startswith(f"{runs.name}/quickstart") and "2 of 3 cells done" in whole


@pytest.mark.parametrize("name", suite_names())
def test_a_shown_suite_is_the_suite_in_full(name: str, tmp_path: Path) -> None:
    text = printed("show", "suite", name)
    shown = yaml.safe_load(text)
    suite = load_suite(name)
    assert (shown["suite"], shown["seeds"], shown["evaluation"]["every"]) == (
        suite.suite,
        suite.seeds,
        suite.evaluation.every,
    )
    copy = tmp_path / "copy.yaml"
    copy.write_text(text, encoding="utf-8")
    assert load_suite(str(copy)) == suite


@pytest.mark.parametrize("name", METHODS.names())
def test_a_shown_method_has_its_paper_and_all_hyperparameters(name: str) -> None:
    text = printed("show", "method", name)
    assert METHODS.summaries()[name] in " ".join(text.split())
    flat = " ".join(text.split())
    for key, field in METHODS.load(name).model_fields.items():
        assert field.description, f"{name}.{key} has no docstring"
        assert re.search(rf"^ {key} ", text, re.MULTILINE)
        assert all(word in flat for word in field.description.split())


def test_fedlsa_is_shown_with_the_values_of_its_lambda() -> None:
    row = re.search(r"^ lam .*$", printed("show", "method", "fedlsa"), re.MULTILINE)
    assert row is not None
    for part in ("0.7", "a number ≥ 0", "0.1, 0.7 — the paper's picks", "0.001–10.0 log", "λ, the weight of"):
        assert part in row[0]


def test_a_shown_method_of_ones_own_says_where_its_ranges_come_from(tmp_path: Path) -> None:
    call_bench("new", "method", "mine", "--dir", tmp_path)
    text = printed("show", "method", str(tmp_path / "mine.py"))
    assert re.search(r"^ mu .* 0\.001–0\.1 log ", text, re.MULTILINE)
    assert "search ranges: derived from the fields of mine" in text


def test_a_shown_partition_counts_the_samples_of_every_client() -> None:
    text = printed("show", "partition", "quickstart_cnn")
    rows = re.findall(r"│ (\d) +│ (\w+) +│ (\d+) +│(.*)│\n", text)
    assert [(client, domain, size) for client, domain, size, _ in rows] == [
        (str(client), domain, "100")
        for client, domain in enumerate(
            domain for domain in ("mnist", "optdigits", "blended", "fonts") for _ in range(2)
        )
    ]
    for *_, counts in rows:
        assert sum(int(number) for number in re.findall(r"\d+", counts)) == 100
    assert printed("show", "partition", "quickstart_cnn") == text
    assert printed("show", "partition", "quickstart_cnn", "--seed", "1") != text


def test_a_cell_is_shown_by_the_beginning_of_its_hash(runs: Path) -> None:
    text = printed("show", "cell", "aa1", "--runs", runs)
    shown = [json.loads(part) for part in re.findall(r"^\{.*?^\}", text, flags=re.M | re.S)]
    folder = runs / "quickstart" / "cells" / "fedavg-s0-aa11"
    assert shown == [json.loads((folder / name).read_text()) for name in ("config.json", "result.json")]
    assert str(folder / "config.json") in text


def test_a_hash_that_fits_several_cells_or_none(runs: Path) -> None:
    outcome = call_bench("show", "cell", "aa", "--runs", runs)
    assert_one_sentence(outcome, "'aa'", "fedavg-s0-aa11", "fedprox-s0-aa22")
    assert_one_sentence(call_bench("show", "cell", "zz", "--runs", runs), "no cell 'zz'", str(runs))


def files_of(run: Path, *suffixes: str) -> list[Path]:
    tables = [run / "tables" / f"quickstart.{suffix}" for suffix in suffixes]
    return [*tables, *(run / "figures" / f"convergence.{suffix}" for suffix in ("png", "pdf"))]


@pytest.mark.parametrize("by", ["name", "path"])
def test_a_report_is_made_again_from_the_records(runs: Path, by: str) -> None:
    run = runs / "quickstart"
    arguments = ["report", "quickstart", "--runs", runs] if by == "name" else ["report", run]
    text = printed(*arguments)
    expected = [*files_of(run, "md", "tex", "csv"), run / "report.html"]
    assert all(file.stat().st_size for file in expected)
    assert [line.strip() for line in text.splitlines() if line.startswith("  ")] == list(map(str, expected))
    assert re.search(r"FedAvg +50\.00 +25\.00 +37\.50", text)
    assert re.search(r"FedProx +75\.00 1/2, ≈ +50\.00 1/2, ≈ +62\.50 1/2, ≈", text)
    first = [file.read_bytes() for file in expected[:3]]
    shutil.rmtree(run / "tables")
    shutil.rmtree(run / "figures")
    (run / "report.html").unlink()
    assert printed(*arguments) == text
    assert [file.read_bytes() for file in expected[:3]] == first


def test_a_report_goes_where_it_is_told(runs: Path, tmp_path: Path) -> None:
    run, out = runs / "quickstart", tmp_path / "paper"
    printed("report", run, "--format", "latex", "--out", out)
    assert sorted(file for file in out.rglob("*") if file.is_file()) == sorted(files_of(out, "tex"))
    assert not (run / "tables").exists() and not (run / "figures").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["quikstart"], "no run 'quikstart'"),
        (["quikstart"], "did you mean 'quickstart'"),
        (["quickstart", "--format", "md,latx"], "did you mean 'latex'"),
        (["quickstart", "--format", ","], "no format is given"),
    ],
    ids=str,
)
def test_a_report_that_cannot_be_made(runs: Path, arguments: list[str], expected: str) -> None:
    assert_one_sentence(call_bench("report", "--runs", runs, *arguments), expected)
    assert not (runs / "quickstart" / "tables").exists()


def test_a_damaged_projection_is_found_before_anything_is_written(runs: Path) -> None:
    whole = write_run(runs / "whole", [Planned("fedavg", 0, (0.5, 0.5))], suite="whole")
    run = runs / "quickstart"
    file = run / "cells" / "fedavg-s0-aa11" / "projection.npz"
    file.write_bytes(b"PK")
    outcome = call_bench("report", whole, run)
    assert_one_sentence(outcome, f"{file} cannot be read", "delete it and make the report again")
    assert not [
        folder for folder in (whole, run) if list(folder.glob("tables")) + list(folder.glob("*.html"))
    ]


@pytest.mark.parametrize(("formats", "written"), [("html", True), ("md,html", True), ("md", False)])
def test_the_ranking_over_suites_is_written_as_html_too(tmp_path: Path, formats: str, written: bool) -> None:
    levels = {"fedavg": 0.5, "fedprox": 0.6, "fedlsa": 0.7}
    for name in ("digits", "pacs"):
        cells = [Planned(method, 0, (level, level), dataset=name) for method, level in levels.items()]
        write_run(tmp_path / name, cells, suite=name)
    out = tmp_path / "out"
    text = printed("report", "digits", "pacs", "--runs", tmp_path, "--format", formats, "--out", out)
    file = out / "tables" / "ranking.html"
    assert file.exists() == written and (str(file) in text) == written
    if written:
        content = file.read_text(encoding="utf-8")
        assert content.startswith("<!doctype html>") and '<meta charset="utf-8">' in content
        assert "<title>Ranks over digits, pacs</title>" in content
        assert re.findall(r'<th scope="row">(\w+)</th><td data-value="(\d)">', content) == [
            ("FedLSA", "1"),
            ("FedProx", "2"),
            ("FedAvg", "3"),
        ]
        assert "seeds" not in content.partition("<tbody>")[2].partition("</tbody>")[0]


def test_sweeps_of_several_suites_are_reported_side_by_side(tmp_path: Path) -> None:
    for name in ("digits", "pacs"):
        two_keys(tmp_path / name, suite=name, dataset=name, seeds=1)
    text = printed("report", "digits", "pacs", "--runs", tmp_path, "--format", "csv")
    for name in ("digits", "pacs"):
        assert f"Sweep of {name} over fedlsa.lam (λ), fedlsa.tau (τ)" in text
        assert (tmp_path / name / "tables" / "sweep.csv").exists()
    merged = tmp_path / "merged"
    assert str(merged / "tables" / "sweep.csv") in text
    lines = (merged / "tables" / "sweep.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 6 and {line.partition(",")[0] for line in lines[1:]} == {"digits", "pacs"}
    assert (merged / "figures" / "sensitivity_grid.png").exists()


def dry_run(suite: Path, out: Path, *arguments: object) -> dict[str, str]:
    text = printed("run", "--suite", suite, "--out", out, "--dry-run", *arguments)
    return dict(line.split(": ", 1) for line in text.splitlines())


def test_a_dry_run_tells_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    told = dry_run(write_suite(tmp_path), out)
    assert told["suite tiny v1"] == "Built-in digits, four clients"
    assert told["cells"] == "4 (2 methods × 2 seeds), 0 already done, 4 to run"
    assert told["methods"] == "FedAvg, FedProx"
    assert told["folder"] == str(out / "tiny")
    assert told["executor"].startswith("stacked (")
    assert told["resources"].startswith("1 CPU per trial")
    assert re.match(r"about [\d.]+ min", told["time"])
    assert re.match(r"about [\d.]+ MB", told["disk"])
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--methods", "moon"], {"methods": "MOON", "cells": "2 (1 method × 2 seeds)"}),
        (["--methods", "fedprox,fedavg", "--seeds", "3"], {"methods": "FedProx, FedAvg", "cells": "6 (2 "}),
        (["--executor", "loop"], {"executor": "loop (asked for with --executor)"}),
        (["--set", "model={name: cnn}"], {"executor": "loop (convolutions"}),
        (["--cpus-per-trial", "2"], {"resources": "2 CPU per trial, 1 at once"}),
    ],
    ids=str,
)
def test_options_change_the_plan(tmp_path: Path, arguments: list[str], expected: dict[str, Any]) -> None:
    told = dry_run(write_suite(tmp_path), tmp_path / "runs", *arguments)
    for key, beginning in expected.items():
        assert told[key].startswith(beginning)


@pytest.mark.parametrize(
    ("option", "needed"),
    [
        (["--cpus-per-trial", "4096"], "a trial needs 4096 CPU but this machine has"),
        (["--gpus-per-trial", "64"], "a trial needs 1 CPU and 64 GPU but this machine has"),
    ],
)
def test_a_dry_run_refuses_what_could_not_run(tmp_path: Path, option: list[str], needed: str) -> None:
    outcome = call_bench("run", "--suite", write_suite(tmp_path), "--dry-run", *option)
    assert outcome.code == 2
    assert needed in outcome.err and "lower --cpus-per-trial" in outcome.err


def test_a_dry_run_for_a_cluster_estimates_nothing(tmp_path: Path) -> None:
    told = dry_run(write_suite(tmp_path), tmp_path / "runs", "--address", "auto", "--cpus-per-trial", "4096")
    assert told["time"] == "not estimated for a cluster"
