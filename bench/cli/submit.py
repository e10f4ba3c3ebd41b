"""`bench submit`: put the results of a run into the repository."""

from __future__ import annotations

from bench.cli.request_options import command_of
from bench.results.request import SubmitRequest


@command_of(SubmitRequest, positional=("run",))
def submit(request: SubmitRequest) -> None:
    """Check a finished run and write its cells to results/SUITE.jsonl, beside those already there."""
    from bench.cli.console import make_console
    from bench.results.submit import submit as submit_run
    from bench.text import counted

    console = make_console()
    done = submit_run(request, console)
    console.say(f"{done.file}: {counted(done.added, 'cell')} added, {done.total} in all")
    console.say(f"check it: bench verify {done.file}")
