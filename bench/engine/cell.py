"""One cell in motion: start or resume it, advance it round by round, write its result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from bench.config.cell import CellConfig
from bench.engine.asked import Round, answered
from bench.engine.assembly import Assembled
from bench.engine.clients.base import Hosts, is_finite
from bench.engine.clock import Clock
from bench.engine.conditions import Conditions
from bench.engine.devices import use_precision
from bench.engine.early_stopping import ChosenRound
from bench.engine.executors import make_hosts
from bench.engine.federation import Federation
from bench.engine.process_cache import ProcessCache
from bench.engine.projection import write_projection
from bench.records.cell_folder import CellFolder
from bench.records.checkpoints import add_checksums, whole_checkpoint, write_checkpoint
from bench.records.provenance import hardware, versions
from bench.records.schema import (
    FinalScores,
    Oracle,
    Provenance,
    Result,
    RoundRecord,
    Selection,
    Timing,
    validations,
)
from bench.suite.methods import code_digest

LAST = 5
"""Rounds at the end whose mean a table shows beside the final one."""


class CellRun:
    """A cell between two rounds. Opening it again resumes from its last checkpoint."""

    def __init__(
        self,
        folder: CellFolder,
        config: CellConfig,
        conditions: Conditions,
        *,
        process_cache: ProcessCache | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`process_cache` has what other cells of this process have in common with this one."""
        self.folder = folder
        self.seed = config.seed
        self._config = config
        self._conditions = conditions
        self._total = config.training.rounds
        folder.open(config)
        assembled = (process_cache or ProcessCache()).assembled(config, conditions)
        self.assembled: Assembled = assembled
        self._fingerprints = assembled.fingerprints
        self._method_code = code_digest(config.method.name)  # now, as its file may change meanwhile
        self.hosts: Hosts = make_hosts(assembled.problem, config, conditions, folder)
        self._federation = Federation(assembled.problem, self.hosts, config.training.participation)
        self._device = assembled.problem.task.device
        use_precision(config.training.precision, self._device)
        self._rounds: list[RoundRecord] = []
        rule = config.training.early_stop
        self._chosen = ChosenRound(rule) if rule is not None else None
        self._resume()
        self._saved_at = time.monotonic()
        self._clock = clock or Clock()
        self._preludes = None if process_cache is None else process_cache.preludes
        self._cpu_started = self._clock.processor

    @property
    def done(self) -> bool:
        return self.folder.is_done

    @property
    def rounds_done(self) -> int:
        return self._federation.rounds

    @property
    def last_average(self) -> float | None:
        """The newest AVG on test, for showing how things go."""
        return next((line.average for line in reversed(self._rounds) if line.average is not None), None)

    @property
    def validations(self) -> dict[int, float]:
        """Round → accuracy on the held-out samples, where it was measured."""
        return validations(self._rounds)

    def divergence(self) -> str | None:
        """Why nothing can come of this cell any more, if so."""
        last = self._rounds[-1] if self._rounds else RoundRecord(round=0)
        if 0 < last.clients == last.dropped:
            return f"every client's reply of round {last.round} was NaN or infinite"
        if not is_finite(self._federation.server):
            return f"the server's state was NaN or infinite after round {last.round}"
        return None

    def advance(self) -> None:
        """One more round: compute, evaluate if due, record, save if due, and finish after the last."""
        answered(self.advancing())

    def advancing(self) -> Round:
        """The same, with the clients' work left to whoever goes through it."""
        started = self._clock.wall
        if self._federation.rounds == 0 and self._federation.has_prelude:
            self._append(self._federation.prelude(self._preludes), started)
            started = self._clock.wall
        record = yield from self._federation.advancing()
        number = record["round"]
        if self._is_evaluated(number):
            scores = yield from self._federation.evaluating(self._config.evaluation.personal)
            record = _with_scores(record, scores)
        self._append(record, started)
        if self._chosen is not None and self._rounds[-1].validation is not None:
            self._chosen.measured(self.validations, self._federation)
        if number == self._total or (self._chosen is not None and self._chosen.stops):
            self._finish()
        elif time.monotonic() - self._saved_at >= self._conditions.checkpoint_seconds:
            write_checkpoint(self.folder.checkpoints, number, self._save_and_seal)
            self._saved_at = time.monotonic()

    def close(self) -> None:
        self.hosts.close()

    def _is_evaluated(self, number: int) -> bool:
        """At intervals, and in all rounds that a table takes a mean of; a search evaluates less often.

        A run as published shows the best of all its rounds, so that all are evaluated.
        """
        evaluation = self._config.evaluation
        if evaluation.test and self._config.method.hyperparameters.get("as_published"):
            return True
        in_mean = number > self._total - LAST and evaluation.test
        return in_mean or number == self._total or number % evaluation.every == 0

    def _resume(self) -> None:
        """Load the last checkpoint and forget the rounds recorded after it: they come again, the same."""
        saved = whole_checkpoint(self.folder.checkpoints, self.folder.recorded())
        if saved is not None:
            number, folder, rounds = saved
            self._federation.load(folder, number)
            self.folder.keep_recorded(rounds)
            self._rounds = [line for line in self.folder.rounds() if line.round <= number]
            if self._chosen is not None:
                self._chosen.load(folder, self.validations, self._device)
        self.folder.keep_rounds(self._rounds)

    def _save_and_seal(self, folder: Path) -> None:
        self._save(folder)
        add_checksums(folder, self.folder.recorded())

    def _save(self, folder: Path) -> None:
        self._federation.save(folder)
        if self._chosen is not None:
            self._chosen.save(folder)

    def _append(self, record: dict[str, Any], started: float) -> None:
        seconds = round(self._clock.wall - started, 3)
        line = RoundRecord.model_validate(record | {"seconds": seconds})
        self._rounds.append(line)
        self.folder.append(line)

    def _finish(self) -> None:
        run = self._federation
        counts = self._chosen or run
        if self._config.seed == 0:  # one picture per row is enough
            write_projection(self.folder.projection, run.problem, counts.server)
        predictions = run.predictions() if self._chosen is None else self._chosen.predictions
        if predictions is not None:
            predictions.write(self.folder.predictions)
        if self._conditions.keep_model:
            self.folder.model.mkdir(exist_ok=True)
            self._federation.save(self.folder.model)
        self.folder.finish(self._result())

    def _result(self) -> Result:
        selected = self._chosen.selection if self._chosen is not None else None
        return Result(
            cell_id=self._config.cell_id,
            rounds=self._federation.rounds,
            selected=selected,
            **_accuracies(self._rounds, selected),
            bytes_up=sum(line.bytes_up for line in self._rounds),
            bytes_down=sum(line.bytes_down for line in self._rounds),
            dropped=sum(line.dropped for line in self._rounds),
            provenance=Provenance(
                commit=self._conditions.commit,
                versions=versions(),
                hardware=hardware(str(self._device), self._conditions.threads),
                executor=self.hosts.executor,
                method_code=self._method_code,
                contract=self._conditions.contract.get(self._config.method.name),
                **asdict(self._fingerprints),
            ),
            timing=Timing(
                wall_seconds=round(sum(line.seconds for line in self._rounds), 3),
                cpu_seconds=round(self._clock.processor - self._cpu_started, 3),
                stacked_with=self._federation.stacked_with,
                finished=datetime.now(UTC).isoformat(timespec="seconds"),
            ),
        )


def _accuracies(rounds: Sequence[RoundRecord], selected: Selection | None) -> dict[str, Any]:
    """The scores of a result; validation alone where the test sets were left alone."""
    last = rounds[-1]
    if selected is not None:
        last = next(line for line in rounds if line.round == selected.round)
    averages = {line.round: line.average for line in rounds if line.average is not None}
    if last.test is None:
        return {"final": FinalScores(validation=last.validation)}
    best = max(averages, key=lambda number: averages[number])
    return {
        "final": FinalScores(
            test=dict(last.test),
            avg=averages[last.round],
            std=pstdev(last.test.values()),
            personal=last.personal,
            validation=last.validation,
        ),
        "last5_avg": fmean(list(averages.values())[-LAST:]),
        "oracle": Oracle(round=best, avg=averages[best]),
    }


def _with_scores(record: dict[str, Any], scores: dict[str, Any]) -> dict[str, Any]:
    metrics = {**scores.pop("metrics", {}), **record.pop("metrics", {})}
    return {**scores, **record, "metrics": metrics}
