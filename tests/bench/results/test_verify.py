"""`bench verify`: what agrees, and that no changed digit goes unnoticed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

from bench.api.observer import PrintingObserver
from bench.records.results_file import CellLine, read_lines
from bench.results.request import VerifyRequest
from bench.results.verify import verify
from tests.kit.cli import assert_one_sentence, call_bench

Change = Callable[[dict[str, Any]], None]


def changed(source: Path, folder: Path, change: Change, line: int = 1, with_checksum: bool = False) -> Path:
    """The file with one line changed; `with_checksum`: by somebody who works the digest out again."""
    lines = source.read_text(encoding="utf-8").splitlines()
    content = json.loads(lines[line])
    change(content)
    if with_checksum:
        content["digest"] = CellLine.model_validate(content).own_digest()
    lines[line] = json.dumps(content)
    file = folder / "tiny.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def flip(number: float) -> float:
    """The number with its sixth decimal changed."""
    text = repr(number).ljust(8, "0")
    return float(f"{text[:7]}{(int(text[7]) + 1) % 10}{text[8:]}")


def flip_history(line: dict[str, Any]) -> None:
    values = line["rounds"]["test"]["accuracy"]["mnist"]
    values[0] = flip(values[0])


def flip_final(line: dict[str, Any]) -> None:
    line["result"]["final"]["test"]["fonts"] = flip(line["result"]["final"]["test"]["fonts"])


def flip_average(line: dict[str, Any]) -> None:
    line["result"]["final"]["avg"] = flip(line["result"]["final"]["avg"])


def flip_configuration(line: dict[str, Any]) -> None:
    line["config"]["training"]["batch_size"] = 11


def flip_bytes(line: dict[str, Any]) -> None:
    line["result"]["bytes_down"] += 1


def test_a_file_agrees_bit_for_bit_where_it_was_made(results_file: Path) -> None:
    outcome = call_bench("verify", results_file, "--cells", "2")
    assert outcome.code == 0, outcome
    assert outcome.out.count("agrees: ") == 2
    assert "every accuracy and byte count of every round is the same" in outcome.out
    assert "6 lines checked, 2 cells chosen with seed 0: all agree" in outcome.out


def test_the_seed_decides_which_cells_are_computed(results_file: Path) -> None:
    def chosen(seed: int) -> list[str]:
        observer = PrintingObserver(progress=False)
        return [
            verdict.cell
            for verdict in verify(VerifyRequest(results_file, cells=1, seed=seed), observer).verdicts
        ]

    assert chosen(0) == chosen(0)
    assert len({*chosen(0), *chosen(1), *chosen(2)}) > 1


@pytest.mark.parametrize("change", [flip_history, flip_final, flip_average, flip_configuration, flip_bytes])
@pytest.mark.parametrize("line", [1, 6])
def test_a_changed_digit_is_caught_in_every_line(
    results_file: Path, tmp_path: Path, change: Change, line: int
) -> None:
    file = changed(results_file, tmp_path, change, line)
    outcome = call_bench("verify", file, "--cells", "0")
    assert outcome.code == 1
    assert "the line was changed after it was written" in outcome.out


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (flip_final, "the final accuracies are not those of the last round"),
        (flip_average, r"avg is 0\.\d+, but follows from the rounds as"),
        (flip_configuration, "the configuration is that of cell"),
        (flip_bytes, "bytes_down is"),
    ],
)
def test_a_line_that_contradicts_itself_is_caught_without_its_digest(
    results_file: Path, tmp_path: Path, change: Change, expected: str
) -> None:
    file = changed(results_file, tmp_path, change, with_checksum=True)
    outcome = call_bench("verify", file, "--cells", "0")
    assert outcome.code == 1 and re.search(f"DISAGREES: FedAvg seed 0: {expected}", outcome.out), outcome


def test_a_consistent_forgery_is_caught_by_the_rerun(results_file: Path, tmp_path: Path) -> None:
    """A line that agrees with itself and with its digest can only be computed again."""
    file = changed(results_file, tmp_path, lambda line: raised(line, 0.1), with_checksum=True)
    assert call_bench("verify", file, "--cells", "0").code == 0
    outcome = call_bench("verify", file, "--cells", "6")
    assert outcome.code == 1
    assert "DISAGREES: FedAvg seed 0: round 1 differs on a machine of the same kind" in outcome.out
    assert outcome.out.count("\nagrees: ") == 5


def raised(line: dict[str, Any], points: float) -> None:
    """AVG raised in every round, with all that follows from it."""
    test, result = line["rounds"]["test"]["accuracy"], line["result"]
    test["mnist"] = [value + 4 * points / 100 for value in test["mnist"]]
    averages = [fmean(values) for values in zip(*test.values(), strict=True)]
    last = {name: values[-1] for name, values in test.items()}
    result["final"] |= {"test": last, "avg": averages[-1], "std": pstdev(last.values())}
    result["last5_avg"] = fmean(averages[-5:])
    best = max(range(len(averages)), key=lambda place: averages[place])
    result["oracle"] = {"round": best + 1, "avg": averages[best]}


def elsewhere(line: dict[str, Any], points: float) -> None:
    """As if computed on another kind of machine, with that difference of AVG."""
    raised(line, points)
    line["result"]["provenance"]["hardware"]["cpu"] = "Another CPU"


def only(source: Path, folder: Path, change: Change) -> Path:
    """A file of one cell, changed so that only a rerun can tell."""
    file = changed(source, folder, change, with_checksum=True)
    kept = file.read_text(encoding="utf-8").splitlines()[:2]
    file.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(("points", "code"), [(0, 0), (2, 0), (4, 1)])
def test_another_kind_of_machine_has_a_tolerance(
    results_file: Path, tmp_path: Path, points: float, code: int
) -> None:
    file = only(results_file, tmp_path, lambda line: elsewhere(line, points))
    outcome = call_bench("verify", file)
    assert outcome.code == code, outcome
    assert f"{points:.2f} apart; {'beyond' if code else 'within'} 3.00 points" in outcome.out
    assert "another kind of machine (cpu Another CPU there" in outcome.out


def test_the_tolerance_follows_from_the_file_or_the_user(results_file: Path, tmp_path: Path) -> None:
    file = only(results_file, tmp_path, lambda line: elsewhere(line, 2))
    assert call_bench("verify", file, "--tolerance", "1").code == 1
    header, line = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{json.dumps(json.loads(header) | {'rerun_sd': 0.5})}\n{line}\n", encoding="utf-8")
    outcome = call_bench("verify", file)
    assert outcome.code == 1 and "beyond 1.50 points" in outcome.out


def test_other_data_are_named(results_file: Path, tmp_path: Path) -> None:
    file = only(results_file, tmp_path, lambda line: line["result"]["provenance"].update(data_checksum="0"))
    outcome = call_bench("verify", file)
    assert outcome.code == 1 and "the data here are others: another data checksum" in outcome.out


def test_mistakes_cost_a_sentence(results_file: Path, tmp_path: Path) -> None:
    assert_one_sentence(call_bench("verify", tmp_path / "nothing.jsonl"), "cannot read", "nothing.jsonl")
    assert_one_sentence(call_bench("verify", results_file, "--cells", "-1"), "--cells -1")
    assert_one_sentence(call_bench("verify", results_file, "--tolerance", "0"), "--tolerance 0")


def test_the_methods_version_has_to_be_at_hand(results_file: Path, tmp_path: Path) -> None:
    def older(line: dict[str, Any]) -> None:
        from bench.config.cell import identity

        line["config"]["method"]["version"] = 99
        line["cell"] = line["result"]["cell"] = identity(line["config"])

    file = only(results_file, tmp_path, older)
    assert_one_sentence(call_bench("verify", file), "version 99 of fedavg", "check out commit 0123456789ab")


def test_every_line_has_its_digest(results_file: Path) -> None:
    _, lines = read_lines(results_file)
    assert all(line.own_digest() == line.digest for line in lines)
    assert len({line.digest for line in lines}) == len(lines)
