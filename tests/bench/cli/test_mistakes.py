"""Whatever a user gets wrong costs one sentence and exit code 2, and leaves nothing behind."""

from pathlib import Path

import pytest

from bench.errors import UserError
from tests.kit.cli import Outcome, assert_one_sentence, call_bench, run_bench, write_suite


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_suite(tmp_path)


def test_a_misspelt_suite_in_a_process_of_its_own(tmp_path: Path) -> None:
    outcome = run_bench("run", "--suite", "quickstrat", "--out", tmp_path / "runs")
    assert outcome == Outcome(2, "", "error: unknown suite 'quickstrat'; did you mean 'quickstart'?\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--methods", "fedavg,fedporx"], "unknown method 'fedporx'; did you mean 'fedprox'"),
        (["--methods", ",", "--dry-run"], "--methods"),
        (["--methods", "fedavg,fedavg"], "'FedAvg'"),
        (["--set", "trainig.epochs=3"], "did you mean 'training'"),
        (["--set", "training.epoch=3"], "unknown key 'training.epoch'; did you mean 'epochs'"),
        (["--set", "training.rounds.more=3"], "training.rounds"),
        (["--set", "fedprox.muu=3"], "unknown key 'muu'; did you mean 'mu'"),
        (["--set", "fedprox.mu"], "--set fedprox.mu: expected KEY=VALUE"),
        (["--set", "fedprox.mu=strong"], "mu = 'strong'"),
        (["--set", "fedprox.mu=.nan"], "mu = nan"),
        (["--set", "fedprox.mu=-0.1"], "method 'fedprox': mu = -0.1"),
        (["--methods", "fedlsa", "--set", "fedlsa.lam=-1"], "method 'fedlsa': lam = -1"),
        (["--methods", "fedlsa", "--set", "fedlsa.lamb=1"], "unknown key 'lamb'; did you mean 'lam'"),
        (["--set", "dataset.name=digits_mni"], "did you mean 'digits_mini'"),
        (["--set", "model.name=mpl"], "did you mean 'mlp'"),
        (["--set", "model.hidden=0"], "hidden = 0"),
        (["--set", "training.optimiser.lr=-1"], "lr = -1"),
        (["--set", "partition={name: dirichlet, clients: 4, beta: 0}"], "partition 'dirichlet': beta = 0"),
        (["--set", "partition={name: dirichlet, clients: 4, beta: -1}"], "partition 'dirichlet': beta = -1"),
        (["--set", "partition={name: dirichlet, clients: 9999, beta: 1}"], "9999 clients"),
        (["--set", "partition={name: iid, clients: 9999}"], "9999 clients"),
        (["--set", "partition.clients=9999"], "'by_domain'"),
        (["--seeds", "0"], "--seeds 0: must be at least 1"),
        (["--seeds", "-2"], "--seeds -2"),
        (["--rounds", "0"], "--rounds 0: must be at least 1"),
        (["--hosts", "0"], "--hosts 0"),
        (["--max-concurrent", "0"], "--max-concurrent 0"),
        (["--cpus-per-trial", "0"], "--cpus-per-trial 0"),
        (["--cpus-per-trial", "nan"], "--cpus-per-trial nan"),
        (["--gpus-per-trial", "-1"], "--gpus-per-trial -1"),
        (["--gpus-per-trial", "nan"], "--gpus-per-trial nan"),
        (["--address", "127.0.0.1:1"], "no Ray cluster at '127.0.0.1:1'"),
        (["--address", "foo"], "--address foo: give HOST:PORT, such as 127.0.0.1:6379, or auto"),
        (["--address", "localhost:http"], "--address localhost:http: give HOST:PORT"),
        (["--address", "localhost:65536"], "--address localhost:65536: give HOST:PORT"),
        (["--address", ":6379"], "--address :6379: give HOST:PORT"),
        (["--address", "a..b:6379"], "no Ray cluster at 'a..b:6379'"),
        (["--address", "ray://localhost:10001"], "bench must run on a node of the cluster"),
        (["--gpus-per-trial", "1.5", "--dry-run"], "--gpus-per-trial 1.5"),
        (["--checkpoint-every", "0"], "--checkpoint-every 0"),
        (["--executor", "stakced"], "unknown --executor 'stakced'; did you mean 'stacked'"),
        (["--tracking-uri", "htp://127.0.0.1"], "did you mean 'http'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_option(tiny: Path, tmp_path: Path, arguments: list[str], expected: str) -> None:
    out = tmp_path / "runs"
    assert_one_sentence(call_bench("run", "--suite", tiny, "--out", out, *arguments), expected)
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("suite: [unclosed\nversion: 1\n", "is not valid YAML"),
        ("suite: a\nversion: 1\nversion: 2\n", "the key 'version' is given twice"),
        ("? [a, b]\n: 1\n", "is not valid YAML"),
        ("- a list\n", "mapping"),
        ("suite: x\nversion: 1\ntitel: misspelt\n", "unknown key 'titel'; did you mean 'title'"),
    ],
)
def test_a_wrong_suite_file(tmp_path: Path, text: str, expected: str) -> None:
    file, out = tmp_path / "mine.yaml", tmp_path / "runs"
    file.write_text(text)
    assert_one_sentence(call_bench("run", "--suite", file, "--out", out), "mine.yaml", expected)
    assert not out.exists()


def test_a_suite_file_that_is_not_there(tmp_path: Path) -> None:
    assert_one_sentence(call_bench("run", "--suite", tmp_path / "mine.yaml"), f"no suite file {tmp_path}")


def test_a_folder_that_cannot_be_written(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    outcome = call_bench("run", "--suite", tiny, "--out", file / "runs")
    assert_one_sentence(outcome, f"cannot write to {file}", "Not a directory", "--out")
    assert file.read_text() == "kept"


@pytest.mark.parametrize("there", [True, False], ids=["empty data root", "missing data root"])
def test_data_that_is_not_there(tmp_path: Path, there: bool) -> None:
    out, root = tmp_path / "runs", tmp_path / "data"
    if there:
        root.mkdir()
    outcome = call_bench("run", "--suite", "office_caltech", "--data-root", root, "--out", out)
    expected = str(root), "office_caltech" if there else "not a folder"
    assert_one_sentence(outcome, *expected)
    assert not out.exists()
    assert_one_sentence(call_bench("data", "check", "office_caltech", "--data-root", root), *expected)


def test_no_data_root_at_all(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    outcome = call_bench("run", "--suite", "office_caltech", "--out", out)
    assert_one_sentence(outcome, "--data-root", "BENCH_DATA_ROOT")
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["list", "method"], "cannot list 'method'; did you mean 'methods'"),
        (["show", "siute", "quickstart"], "cannot show 'siute'; did you mean 'suite'"),
        (["show", "suite", "quikstart"], "did you mean 'quickstart'"),
        (["show", "method", "fedlas"], "did you mean 'fedlsa'"),
        (["show", "partition", "quikstart"], "did you mean 'quickstart'"),
        (["show", "partition", "quickstart", "--seed", "-1"], "--seed -1"),
        (["show", "partition", "office_caltech"], "--data-root"),
        (["speed", "--work", "digit"], "did you mean 'digits'"),
        (["speed", "--work", "digits,headz"], "did you mean 'heads'"),
        (["speed", "--repeats", "0"], "--repeats 0: must be at least 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_name(arguments: list[str], expected: str) -> None:
    assert_one_sentence(call_bench(*arguments), expected)


def test_an_encoder_that_is_not_there() -> None:
    outcome = call_bench("run", "--suite", "quickstart", "--dry-run", "--encoder", "pixel")
    assert_one_sentence(outcome, "did you mean 'pixels'")


def test_debug_shows_where_a_mistake_was_found() -> None:
    with pytest.raises(UserError, match="quickstrat"):
        call_bench("--debug", "run", "--suite", "quickstrat")
