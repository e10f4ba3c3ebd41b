"""Why a trial's process was lost, in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray import tune
from ray.air.execution._internal import RayActorManager
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.tune.execution import tune_controller

_SHORT_OF_MEMORY = re.compile(r"low on memory|memory usage threshold|memory pressure", re.IGNORECASE)
_LOST_NODE = re.compile(r"node has died|node is dead|node died|node was (terminated|lost)", re.IGNORECASE)
_ADDRESS = re.compile(r"\bIP: ?([0-9a-f.:]+)")


class ProcessFailures(tune.Callback):
    """Knows the trials, and why the last attempt at one of them came to nothing."""

    def __init__(self) -> None:
        self._trials: Sequence[Any] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {"_trials": ()}

    def on_step_begin(self, iteration: int, trials: Any, **_: Any) -> None:
        self._trials = trials

    def text(self, trial_id: str) -> str:
        """Ray's own words about the last failure; empty if there was none."""
        file = next((trial.error_file for trial in self._trials if trial.trial_id == trial_id), None)
        if not file or not Path(file).is_file():
            return ""
        return re.split(r"^Failure # .*\n", Path(file).read_text(encoding="utf-8"), flags=re.MULTILINE)[-1]

    def was_for_memory(self, trial_id: str) -> bool:
        """Whether Ray ended the process, since its node was short of memory."""
        return _SHORT_OF_MEMORY.search(self.text(trial_id)) is not None

    def reason(self, trial_id: str) -> str:
        """One sentence."""
        return reason_of_failure(self.text(trial_id))


def reason_of_failure(text: str) -> str:
    """Ray's many words about the end of a process, in one sentence."""
    if _SHORT_OF_MEMORY.search(text):
        address = _ADDRESS.search(text)
        node = f"the node {address[1]}" if address else "its node"
        return f"Ray ended its process because {node} was short of memory"
    if _LOST_NODE.search(text):
        return "the node that it ran on was lost"
    if "Traceback" in text:
        last = text.strip().splitlines()[-1].strip()
        return f"its process could not work: {last}"
    return "its process crashed or was killed"


class _Manager(RayActorManager):
    """Leaves it to Tune to try a trial again whatever its process was lost by.

    Ray's own takes a process that was ended for memory, or a result that was lost with its node, for a fault
    of its own and breaks off the whole run.
    """

    def _actor_task_failed(self, tracked_actor_task: Any, exception: Exception) -> None:
        if isinstance(exception, RayError) and not isinstance(exception, RayActorError | RayTaskError):
            exception = RayActorError(error_msg=str(exception))
        super()._actor_task_failed(tracked_actor_task, exception)


@contextmanager
def survived() -> Iterator[None]:
    """Tune retries the trials that run inside, whatever their processes are lost by."""
    own = tune_controller.RayActorManager
    tune_controller.RayActorManager = _Manager  # type: ignore[misc]
    try:
        yield
    finally:
        tune_controller.RayActorManager = own  # type: ignore[misc]
