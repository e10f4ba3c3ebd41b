"""The MLflow view of the records, read back through MLflow's own client."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.records.schema import SweptRecord
from bench.tracking.tracker import Tracker, digest_of, recorded_store
from tests.kit.cli import call_bench
from tests.kit.run_folders import Planned, write_run
from tests.kit.tracking import ROUNDS, Cell, Store, assert_complete

pytestmark = pytest.mark.xdist_group("mlflow")


def test_nothing_is_printed_while_the_database_is_made(mlflow_store: Store) -> None:
    assert mlflow_store.said.getvalue() == ""
    assert (mlflow_store.out / "mlflow.db").exists()


def test_a_finished_cell_becomes_a_run(mlflow_store: Store) -> None:
    cell = mlflow_store.cell("whole", "a")
    mlflow_store.log(cell)
    (run,) = mlflow_store.runs("whole")
    assert_complete(mlflow_store, run)
    assert run.info.run_name == "FedLSA (λ = 0.7) s3"
    assert run.data.tags["mlflow.parentRunId"] == mlflow_store.suite_run("whole").info.run_id
    assert (run.info.start_time, run.info.end_time) == (1767323042000, 1767323045000)
    assert run.data.params == {
        "label": "FedLSA (λ = 0.7)",
        "suite.name": "whole",
        "suite.version": "2",
        "variant": "",
        "dataset.name": "digits",
        "dataset.domains": json.dumps(["mnist", "β=0.1"]),
        "partition.name": "domain",
        "model.name": "cnn",
        "model.norm": "null",
        "training.rounds": "2",
        "training.batch_size": "8",
        "training.epochs": "1",
        "training.participation": "1.0",
        "training.validation": "0.0",
        "training.optimiser.name": "sgd",
        "training.optimiser.lr": "0.01",
        "evaluation.every": "1",
        "evaluation.personal": "false",
        "method.name": "fedlsa",
        "method.version": "1",
        "lam": "0.7",
        "seed": "3",
        "method.hyperparameters.seed": "9",
    }
    tags = {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.")}
    assert tags == {
        "cell": cell.hash,
        "suite": "whole",
        "method": "fedlsa",
        "label": "FedLSA (λ = 0.7)",
        "variant": "",
        "seed": "3",
        "commit": "c0ffee",
        "record": f"cells/{cell.path.name}",
    }
    names = ("config.json", "result.json")
    assert mlflow_store.files(run) == {name: (cell.path / name).read_bytes() for name in names}
    assert Path(run.info.artifact_uri.removeprefix("file://")).is_relative_to(
        mlflow_store.out / "mlartifacts"
    )


def test_rows_of_one_method_are_told_apart_below_one_suite(mlflow_store: Store) -> None:
    labels = [f"FedLSA (λ = {value})" for value in (0.1, 0.5, 0.7)]
    for label in labels:
        mlflow_store.restart()  # another driver resumes the suite, and makes no second run for it
        mlflow_store.log(mlflow_store.cell("rows", label, label=label))
    runs = mlflow_store.runs("rows")
    assert sorted(run.info.run_name for run in runs) == [f"{label} s3" for label in labels]
    assert sorted(run.data.tags["label"] for run in runs) == labels
    assert sorted(run.data.params["label"] for run in runs) == labels
    parent = mlflow_store.suite_run("rows")
    assert parent.info.run_name == "rows v2"
    assert {run.data.tags["mlflow.parentRunId"] for run in runs} == {parent.info.run_id}


def test_a_new_label_replaces_the_old_one(mlflow_store: Store) -> None:
    cell = mlflow_store.cell("relabelled", "a")
    mlflow_store.log(cell)
    cell.planned = cell.planned.model_copy(update={"label": "Ours"})
    assert mlflow_store.pending(cell) == [cell.path]
    mlflow_store.log(cell)
    (run,) = mlflow_store.runs("relabelled")
    assert_complete(mlflow_store, run)
    assert (run.info.run_name, run.data.params["label"]) == ("Ours s3", "Ours")
    assert mlflow_store.pending(cell) == []


def test_swept_keys_are_parameters_as_the_user_wrote_them(mlflow_store: Store) -> None:
    cell = mlflow_store.cell("swept", "a")
    mlflow_store.log(cell)
    values = {"fedlsa.lam": 0.7, "training.optimiser.lr": 0.1, "fedlsa.mode": "cosine"}
    swept = SweptRecord(row="FedLSA", values=values, defaults=values)
    cell.planned = cell.planned.model_copy(update={"swept": swept})
    assert mlflow_store.pending(cell) == [cell.path]  # it was logged before it was part of a sweep
    mlflow_store.log(cell)
    (run,) = mlflow_store.runs("swept")
    assert_complete(mlflow_store, run)
    assert {key: run.data.params[key] for key in (*values, "lam")} == {
        "fedlsa.lam": "0.7",
        "training.optimiser.lr": "0.1",  # the row's, not the 0.01 of the suite
        "fedlsa.mode": "cosine",
        "lam": "0.7",
    }
    assert run.data.tags["swept_row"] == "FedLSA" and mlflow_store.pending(cell) == []


def test_a_run_of_version_0_1_gets_its_label_and_parent(mlflow_store: Store) -> None:
    from mlflow.entities import Metric, Param

    mlflow_store.log(mlflow_store.cell("former", "new"))
    cell, client = mlflow_store.cell("former", "old"), mlflow_store.client
    tags = {"cell": cell.hash, "suite": "former", "method": "fedlsa", "seed": "3"}
    old = client.create_run(mlflow_store.experiment("former"), tags=tags, run_name="fedlsa s3").info.run_id
    client.log_batch(old, [Metric("test_mnist", 0.25, 1, 1)], [Param("lam", "0.7"), Param("seed", "3")])
    client.set_terminated(old)
    marker = {
        "uri": mlflow_store.tracker.address,
        "run_id": old,
        "sha256": digest_of([cell.path / "result.json"]),
    }
    cell.write("mlflow.json", marker)
    mlflow_store.restart()
    assert mlflow_store.pending(cell) == [cell.path]
    mlflow_store.log(cell)
    (run,) = [run for run in mlflow_store.runs("former") if run.data.tags["cell"] == cell.hash]
    assert run.info.run_id == old
    assert_complete(mlflow_store, run)
    assert run.info.run_name == "FedLSA (λ = 0.7) s3"
    assert run.data.tags["label"] == run.data.params["label"] == "FedLSA (λ = 0.7)"
    assert run.data.tags["mlflow.parentRunId"] == mlflow_store.suite_run("former").info.run_id
    assert mlflow_store.pending(cell) == []


def test_a_long_cell_needs_several_batches(mlflow_store: Store) -> None:
    cell = mlflow_store.cell("long", "a", done=False)
    cell.train(
        [{"round": n, "bytes_up": 1, "bytes_down": 2, "metrics": {"loss": 1 / (n + 1)}} for n in range(700)]
    )
    config = json.loads((cell.path / "config.json").read_text())
    config["method"]["hyperparameters"] = {f"h{n}": n for n in range(250)}
    cell.write("config.json", config)
    cell.finish()
    mlflow_store.log(cell)
    (run,) = mlflow_store.runs("long")
    assert mlflow_store.history(run, "metrics.loss") == [(n, 1 / (n + 1)) for n in range(700)]
    assert mlflow_store.history(run, "bytes_down") == [(n, 2 * (n + 1)) for n in range(700)]
    assert {f"h{n}": str(n) for n in range(250)}.items() <= run.data.params.items()


def test_logging_again_changes_nothing(mlflow_store: Store) -> None:
    cell = mlflow_store.cell("again", "a")
    mlflow_store.log(cell)
    before = mlflow_store.runs("again")
    (cell.path / "mlflow.json").unlink()
    mlflow_store.log(cell)
    after = mlflow_store.runs("again")
    assert [run.info.run_id for run in after] == [run.info.run_id for run in before]
    assert_complete(mlflow_store, after[0])


def test_a_run_left_by_a_killed_driver_is_completed(mlflow_store: Store) -> None:
    from mlflow.entities import Metric, Param

    mlflow_store.log(mlflow_store.cell("killed", "other"))
    cell = mlflow_store.cell("killed", "a")
    left = mlflow_store.client.create_run(mlflow_store.experiment("killed"), tags={"cell": cell.hash})
    mlflow_store.client.log_batch(
        left.info.run_id,
        [Metric("test_mnist", 0.25, 1, 1), Metric("bytes_up", 5, 1, 0)],
        [Param("lam", "0.7")],
    )
    mlflow_store.restart()
    assert mlflow_store.pending(cell) == [cell.path]
    mlflow_store.log(cell)
    mine = [run for run in mlflow_store.runs("killed") if run.data.tags["cell"] == cell.hash]
    assert [run.info.run_id for run in mine] == [left.info.run_id]
    assert_complete(mlflow_store, mine[0])
    assert mine[0].data.params["training.optimiser.lr"] == "0.01"


def test_a_cell_run_anew_with_other_values_shows_only_those(mlflow_store: Store) -> None:
    cell = mlflow_store.cell("anew", "a", done=False)
    cell.train([{**ROUNDS[1], "test": {"mnist": 0.0, "β=0.1": 0.0}}])
    cell.finish("2026-01-01T00:00:00+00:00")
    mlflow_store.log(cell)
    cell.train()
    cell.finish()
    mlflow_store.log(cell)
    (run,) = mlflow_store.runs("anew")
    assert_complete(mlflow_store, run)


def test_a_failed_cell_is_shown_and_mended_when_it_succeeds(mlflow_store: Store) -> None:
    cell = mlflow_store.cell("mended", "a", done=False)
    cell.train(ROUNDS[:2])
    cell.fail()
    assert mlflow_store.pending(cell) == [cell.path]
    mlflow_store.log(cell)
    (failed,) = mlflow_store.runs("mended")
    assert failed.info.status == "FAILED"
    assert failed.data.tags["error"] == "ValueError: loss is NaN"
    assert mlflow_store.history(failed, "test_avg") == [(1, 0.5)]
    assert set(mlflow_store.files(failed)) == {"config.json"}
    assert mlflow_store.pending(cell) == []

    cell.train()
    cell.finish()
    assert mlflow_store.pending(cell) == [cell.path]
    mlflow_store.log(cell)
    (mended,) = mlflow_store.runs("mended")
    assert mended.info.run_id == failed.info.run_id
    assert "error" not in mended.data.tags
    assert_complete(mlflow_store, mended)


def test_a_deleted_experiment_comes_back(mlflow_store: Store) -> None:
    mlflow_store.log(mlflow_store.cell("deleted", "a"))
    mlflow_store.client.delete_experiment(mlflow_store.experiment("deleted"))
    Tracker(None, mlflow_store.out).log_cell(mlflow_store.out, mlflow_store.cell("deleted", "b").planned)
    assert len(mlflow_store.runs("deleted")) == 2


def test_pending_cells_are_those_that_ended_and_are_not_logged(mlflow_store: Store, tmp_path: Path) -> None:
    logged, fresh = mlflow_store.cell("pending", "a"), mlflow_store.cell("pending", "b")
    running = mlflow_store.cell("pending", "c", done=False)
    running.train()
    mlflow_store.log(logged)
    assert mlflow_store.pending(logged, fresh, running) == [fresh.path]
    assert mlflow_store.pending(logged, tracker=Tracker(None, tmp_path)) == [logged.path]
    logged.finish("2026-02-02T00:00:00+00:00")
    assert mlflow_store.pending(logged, fresh, running) == [logged.path, fresh.path]


def test_cells_are_pending_again_while_the_database_is_gone(mlflow_store: Store) -> None:
    cell = mlflow_store.cell("gone", "a")
    mlflow_store.log(cell)
    database, elsewhere = mlflow_store.out / "mlflow.db", mlflow_store.out / "elsewhere.db"
    database.rename(elsewhere)
    assert mlflow_store.pending(cell) == [cell.path]
    elsewhere.rename(database)
    assert mlflow_store.pending(cell) == []


def test_tables_and_figures_are_replaced(mlflow_store: Store) -> None:
    run_dir = mlflow_store.out
    (run_dir / "plan.json").write_text(json.dumps({"schema": 1, "suite": {"name": "tables", "version": 2}}))
    table, figure = run_dir / "tables" / "table.md", run_dir / "figures" / "curves.svg"
    for path, text in ((table, "old"), (figure, "<svg/>")):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    mlflow_store.log(mlflow_store.cell("tables", "a"))
    mlflow_store.tracker.log_suite(run_dir)
    table.write_text("new")
    mlflow_store.tracker.log_suite(run_dir)
    run = mlflow_store.suite_run("tables")
    assert (run.info.status, run.info.run_name) == ("FINISHED", "tables v2")
    assert mlflow_store.files(run, "tables") == {"tables/table.md": b"new"}
    assert mlflow_store.files(run, "figures") == {"figures/curves.svg": b"<svg/>"}


def test_a_report_made_again_renews_what_mlflow_shows(mlflow_store: Store, tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "quickstart", [Planned("fedavg", 0, (0.5, 0.5))])
    tracker = Tracker(f"sqlite:///{mlflow_store.out}/mlflow.db", tmp_path)
    tables = run_dir / "tables"
    tables.mkdir()
    (tables / "quickstart.md").write_text("old")
    assert recorded_store(run_dir) is None
    tracker.log_suite(run_dir)
    assert recorded_store(run_dir) == tracker.address
    outcome = call_bench("report", run_dir, "--format", "md")
    assert outcome.code == 0 and "stay as they are; give --tracking-uri" in outcome.out
    for _ in range(2):
        outcome = call_bench("report", run_dir, "--format", "md", "--tracking-uri", tracker.address)
        assert outcome.code == 0
    run = mlflow_store.suite_run("quickstart")
    logged = mlflow_store.files(run, "tables") | mlflow_store.files(run, "figures")
    assert logged["tables/quickstart.md"] == (tables / "quickstart.md").read_bytes()
    assert b"50.00" in logged["tables/quickstart.md"]
    assert "figures/convergence.png" in logged


def test_mlflow_is_not_imported_when_there_is_nothing_to_write(mlflow_store: Store) -> None:
    cell = mlflow_store.cell("idle", "a")
    (mlflow_store.out / "plan.json").write_text(
        json.dumps({"schema": 1, "suite": {"name": "idle", "version": 1}})
    )
    mlflow_store.log(cell)
    mlflow_store.tracker.log_suite(mlflow_store.out)
    code = f"""
import sys
from pathlib import Path
from bench.records.schema import PlannedRecord
from bench.tracking.tracker import Tracker
out, cell = Path({str(mlflow_store.out)!r}), PlannedRecord.model_validate({cell.planned.model_dump()!r})
tracker = Tracker(None, out)
tracker.log_suite(out)
print(tracker.pending(out, [cell]), "--backend-store-uri" in tracker.ui_command(), "mlflow" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True False\n"


@pytest.mark.long
def test_a_kill_while_the_database_is_made_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell(tmp_path, "kill", "a")
    cell.train()
    cell.finish()
    code = f"""
from pathlib import Path
from bench.records.schema import PlannedRecord
from bench.tracking.tracker import Tracker
out, cell = Path({str(tmp_path)!r}), PlannedRecord.model_validate({cell.planned.model_dump()!r})
Tracker(None, out).log_cell(out, cell)
"""
    command = [sys.executable, "-c", code]
    cache = tmp_path / "cache"
    monkeypatch.setenv("BENCH_CACHE", str(cache))
    with subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}) as first:
        deadline = time.monotonic() + 60
        while not any(file.stat().st_size > 300_000 for file in cache.glob("mlflow/.*.new-*/*.db")):
            assert time.monotonic() < deadline and first.poll() is None
            time.sleep(0.005)
        first.kill()
    assert not (tmp_path / "mlflow.db").exists()
    together = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(120) for process in together] == [0, 0]
    assert not list(cache.glob("mlflow/.*.new-*")) and not list(tmp_path.glob(".*.new-*"))
