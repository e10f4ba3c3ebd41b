"""Ray's words about a lost process become one sentence that is true."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from ray.exceptions import ActorDiedError, NodeDiedError, OutOfMemoryError, RayActorError

from bench.cluster.failures import ProcessFailures, reason_of_failure

KILLED_FOR_MEMORY = """Task was killed due to the node running low on memory.
Memory on the node (IP: 192.0.2.7, ID: 5a6f) where the task (actor ID: 0dd7, name=CellTrial, pid=27, \
memory used=1.83GB) was running was 7.62GB / 8.00GB, which exceeds the memory usage threshold of 0.95. \
Ray killed this worker (ID: 77ae) because it was the most recently scheduled task.
Top 10 memory users:
PID	MEM(GB)	COMMAND
27	1.83	ray::CellTrial.train
"""
LOST_NODE = """The actor died unexpectedly before finishing this task.
	class_name: CellTrial
	actor_id: 0dd7
The actor died because its node has died. Node Id: 5a6f
	the actor's node was terminated unexpectedly: health check failed due to missing too many heartbeats
"""
KILLED = """The actor died unexpectedly before finishing this task.
	class_name: CellTrial
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: \
Worker unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. \
(1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called. \
(3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.
"""
RAISED = """ray::CellTrial.__init__() (pid=27, ip=192.0.2.7)
Traceback (most recent call last):
  File "somewhere.py", line 3, in setup
ModuleNotFoundError: No module named 'my_methods'
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            str(OutOfMemoryError(KILLED_FOR_MEMORY)),
            "Ray ended its process because the node 192.0.2.7 was short of memory",
        ),
        (str(RayActorError(error_msg=LOST_NODE)), "the node that it ran on was lost"),
        (str(NodeDiedError("The node died.")), "the node that it ran on was lost"),
        (KILLED, "its process crashed or was killed"),
        (str(ActorDiedError()), "its process crashed or was killed"),
        (RAISED, "its process could not work: ModuleNotFoundError: No module named 'my_methods'"),
    ],
)
def test_reasons(text: str, expected: str) -> None:
    assert reason_of_failure(text) == expected


def test_the_last_failure_counts(tmp_path: Path) -> None:
    """Tune appends every failure of a trial to one file."""
    file = tmp_path / "error.txt"
    file.write_text(f"Failure # 1 (noon)\n{LOST_NODE}\nFailure # 2 (one)\n{KILLED_FOR_MEMORY}\n")
    failures = ProcessFailures()
    trials = [SimpleNamespace(trial_id=name, error_file=path) for name, path in (("a", None), ("b", file))]
    failures.on_step_begin(1, trials)
    assert failures.was_for_memory("b") and "192.0.2.7" in failures.reason("b")
    assert not failures.was_for_memory("a") and failures.text("a") == failures.text("unknown") == ""
