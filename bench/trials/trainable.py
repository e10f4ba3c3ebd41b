"""A process that takes one job after the other, and reports to the driver all that its cells leave behind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container
from functools import cached_property
from typing import Any

from ray import tune

from bench.engine.cell_stack import Cells
from bench.engine.process import keep_share
from bench.engine.process_cache import ProcessCache
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.trials.scratch import Job, ScratchFolders

UPDATES = "news"
"""The key of a result that holds what is new of the cells."""


class CellTrainable(tune.Trainable):
    """Works on a job's cells at a scratch of its own.

    Cells keep their own checkpoints, so Tune's are switched off and a retried trial resumes where it was.
    """

    report_seconds = 1.0
    """After how much work the driver is told of it, at the latest."""
    _scratch: ScratchFolders | None = None
    _failed: Exception | None = None

    def setup(self, config: dict[str, Any]) -> None:
        self.job: Job = config["job"]
        self.job.conditions.take_effect()

    @cached_property
    def process_cache(self) -> ProcessCache:
        """What a job may have in common with the next."""
        return ProcessCache()

    @property
    def cells(self) -> Cells:
        """The job's cells, in this process's folders."""
        assert self._scratch is not None
        return self._scratch.cells

    @abstractmethod
    def begin(self, cells: Cells) -> None:
        """Take up the cells of a job in these folders; called before the first `work`."""

    @abstractmethod
    def work(self) -> None:
        """Advance the cells until there is something to report."""

    def waiting(self) -> Container[CellFolder]:
        """The folders of cells that have not been opened yet."""
        return ()

    @abstractmethod
    def standing(self) -> dict[str, Any]:
        """How far the cells are, for Tune; also after a failure."""

    @abstractmethod
    def end(self) -> None:
        """Let go of the cells."""

    def step(self) -> dict[str, Any]:
        """A failure is reported with what was done before it, and raised when the driver has that."""
        if self._failed is not None:
            raise self._failed
        try:
            if self._scratch is None:
                self._scratch = ScratchFolders(self.job)
                self.job.driver_node.check_versions()
                self.begin(self._scratch.cells)
            self.work()
        except Exception as error:
            if self._scratch is None:
                raise
            self._failed = error
            self.fail(error)
        report = {**self.standing(), UPDATES: self._scratch.updates(self.waiting())}
        if self._failed is not None:
            report[tune.result.DONE] = False  # so that Tune asks once more, and gets the failure
        return report

    def fail(self, error: Exception) -> None:
        """Leave the reason in the first cell's folder."""
        assert self._scratch is not None
        self._scratch.cells[0][0].fail(error)

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing to do here: see `CellRun`."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Nothing to do here: see `CellRun`."""

    def cleanup(self) -> None:
        """End the present job."""
        self.end()
        if self._scratch is not None:
            self._scratch.clear()
        self._scratch = self._failed = None
        keep_share(self.job.conditions.cpus)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.cleanup()
        self.setup(new_config)
        return True


class ReportWriter(tune.Stopper):
    """Puts what comes with a trial's results in its place. It stops nothing.

    Of all who are told of a result, Tune asks the stopper first, so that everybody else finds the records
    there. Nothing of it stays in the result, which Tune keeps.
    """

    def __init__(self) -> None:
        self.problem: UserError | None = None
        """What kept it from writing, such as a full disk."""

    def __getstate__(self) -> dict[str, Any]:
        """Tune copies its stopper to disk, where this one is of no use."""
        return {"problem": None}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        for cell in result.pop(UPDATES, ()):
            try:
                cell.update.deliver(cell.folder, cell.config)
            except OSError as error:
                self.problem = UserError(
                    f"cannot write {cell.folder.path}: {error.strerror}; make room there, or choose another "
                    "folder with --out, and run the same command again to resume"
                )
                raise
            except UserError as error:
                self.problem = error
                raise
        return False

    def stop_all(self) -> bool:
        return False
