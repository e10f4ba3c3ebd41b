"""`bench check` and `bench new`, as a user types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.contract.rules import RULES
from bench.data import cache
from bench.data.base import DatasetSpec
from bench.suite.methods import METHODS
from bench.user_code.methods import class_in_file
from tests.kit.cli import assert_one_sentence, call_bench

BROKEN = '''"""A mean over the whole batch."""
from methods.fedavg import FedAvg

class Careless(FedAvg):
    label = "Careless"
    neutral = "pulls its logits together"

    def objective(self, task, client, message):
        plain = super().objective(task, client, message)
        return lambda y, batch: plain(y, batch) + task.logits(y, batch.x).square().mean()
'''


def test_a_new_method_passes_as_it_is(tmp_path: Path) -> None:
    written = call_bench("new", "method", "my_method", "--dir", tmp_path / "mine")
    file = tmp_path / "mine" / "my_method.py"
    assert written.code == 0
    assert written.out.splitlines()[0] == f"wrote {file}"
    checked = call_bench("check", file)
    assert checked.code == 0, checked.out
    lines = checked.out.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [f"✓ {rule.name}" for rule in RULES]
    assert lines[-1].startswith("✓ MyMethod passes the contract: ")
    assert checked.err == ""


def test_a_method_that_counts_padding_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "careless.py"
    file.write_text(BROKEN)
    checked = call_bench("check", file)
    assert checked.code == 1
    (line,) = [line for line in checked.out.splitlines() if line.startswith("✗ padding")]
    assert "lets padding count" in line
    assert line.endswith("(see CONTRIBUTING.md, 'Padding')")
    assert checked.out.splitlines()[-1].startswith("✗ Careless does not pass the contract: ")


def test_several_methods_are_summed_up(tmp_path: Path) -> None:
    (tmp_path / "careless.py").write_text(BROKEN)
    checked = call_bench("check", "fedclip", tmp_path / "careless.py")
    assert checked.code == 1
    assert checked.out.splitlines()[0].startswith("✓ FedCLIP passes the contract")
    assert checked.out.splitlines()[-1] == "1 of 2 methods pass the contract"


def test_a_hyperparameter_can_be_set() -> None:
    assert call_bench("check", "fedclip", "--set", "weighting=uniform").code == 0
    assert_one_sentence(call_bench("check", "fedclip", "--set", "weighting=best"), "weighting = 'best'")
    assert_one_sentence(call_bench("check", "fedclip", "--set", "fedclip.mu=1"), "hyperparameter alone")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("fedprx", "did you mean 'fedprox'?"),
        ("ggeur", "goes around another method"),
        ("missing.py", "no file missing.py"),
    ],
)
def test_a_wrong_name_is_one_sentence(given: str, words: str) -> None:
    assert_one_sentence(call_bench("check", given), words)


def test_a_new_suite_can_be_planned(tmp_path: Path) -> None:
    assert call_bench("new", "suite", "my_suite", "--dir", tmp_path).code == 0
    planned = call_bench(
        "run", "--suite", tmp_path / "my_suite.yaml", "--dry-run", "--out", tmp_path / "runs"
    )
    assert planned.code == 0, planned.err
    assert "cells: 4 (2 methods × 2 seeds)" in planned.out


def test_a_new_dataset_can_be_built(tmp_path: Path) -> None:
    assert call_bench("new", "dataset", "my_points", "--dir", tmp_path).code == 0
    kind = class_in_file(tmp_path / "my_points.py", DatasetSpec)
    assert issubclass(kind, DatasetSpec)
    dataset = cache.load("my_points", kind(), None, tmp_path / "cache")
    assert dataset.domains == ("near", "far")
    for domain, sizes in kind.counts.items():
        assert (len(dataset.train[domain]), len(dataset.test[domain])) == sizes
        assert dataset.train[domain].x.dtype == "float32"


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("method", "1st", "'1st' cannot name a method"),
        ("suite", "my-suite", "'my-suite' cannot name a suite"),
        ("method", "class", "'class' cannot name a method"),
        ("method", "fedprox", "there is a method 'fedprox' already"),
        ("methd", "mine", "unknown kind; did you mean 'method'?"),
    ],
)
def test_a_wrong_request_for_a_new_file_is_one_sentence(
    kind: str, name: str, words: str, tmp_path: Path
) -> None:
    assert_one_sentence(call_bench("new", kind, name, "--dir", tmp_path), words)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("precious")
    assert_one_sentence(call_bench("new", "method", "mine", "--dir", tmp_path), "mine.py is already there")
    assert (tmp_path / "mine.py").read_text() == "precious"


def test_the_space_of_a_method_is_written_beside_it(tmp_path: Path) -> None:
    call_bench("new", "method", "mine", "--dir", tmp_path)
    done = call_bench("new", "space", tmp_path / "mine.py")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == f"wrote {tmp_path / 'mine.yaml'}"
    assert "bench tune --suite quickstart_cnn --methods" in " ".join(done.out.split())
    assert_one_sentence(call_bench("new", "space", tmp_path / "mine.py"), "mine.yaml is already there")
    assert_one_sentence(
        call_bench("new", "space", tmp_path / "mine.py", "--dir", tmp_path), "leave out --dir"
    )
    assert_one_sentence(call_bench("new", "space", "fedprox"), "'fedprox' is not the file of a method")


def test_all_names_every_registered_method() -> None:
    from bench.cli.check import registered

    assert set(METHODS.names()) < set(registered())
    assert {name.partition("+")[0] for name in registered() if "+" in name} == {
        "aligned",
        "compressed",
        "dp",
        "fedheal",
        "fedrdn",
        "ggeur",
        "proto",
        "robust",
    }
