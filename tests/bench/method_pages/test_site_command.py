"""`bench site`: from results files to a site with what the methods' sources say."""

from __future__ import annotations

from pathlib import Path

from bench.method_pages.method_info import method_info
from bench.suite.methods import METHODS
from tests.kit.cli import assert_one_sentence, call_bench


def test_the_site_of_a_results_folder(results_file: Path, tmp_path: Path) -> None:
    outcome = call_bench("site", results_file.parent, "--out", tmp_path / "site")
    assert outcome.code == 0, outcome
    assert str(tmp_path / "site" / "index.html") in outcome.out
    suite = (tmp_path / "site" / "suites" / "tiny.html").read_text(encoding="utf-8")
    assert "FedAvg (default)" in suite and "bench verify results/tiny.jsonl" in suite
    assert (tmp_path / "site" / "suites" / "tiny" / "figures" / "convergence.png").is_file()
    method = (tmp_path / "site" / "methods" / "fedavg.html").read_text(encoding="utf-8")
    assert "optimiser.lr = 0.1" in method and "McMahan" in method
    assert {file.stem for file in (tmp_path / "site" / "methods").iterdir()} >= {*METHODS.names()}


def test_a_folder_without_results_is_named(tmp_path: Path) -> None:
    assert_one_sentence(
        call_bench("site", tmp_path, "--out", tmp_path / "site"), "no results files", "bench submit"
    )


def test_the_source_of_a_method_is_told() -> None:
    info = method_info("fedprox")
    assert info.label == "FedProx" and "μ" in info.text
    assert {each.name: each.default for each in info.hyperparameters}["mu"]
    assert all(each.meaning for each in info.hyperparameters)


def test_of_a_wrapper_both_sources_are_told() -> None:
    info = method_info("ggeur+fedprox")
    assert info.text.startswith(method_info("ggeur+fedavg").summary)
    assert method_info("fedprox").text in info.text
