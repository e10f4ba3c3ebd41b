"""`bench verify`: compute cells of a results file again and compare."""

from __future__ import annotations

from bench.cli.request_options import command_of
from bench.results.request import VerifyRequest


@command_of(VerifyRequest, positional=("file",))
def verify(request: VerifyRequest) -> int:
    """Check every line of a results file, compute some cells again, and say whether they agree.

    On a machine of the same kind (CPU, threads, versions of torch and NumPy) a rerun must agree bit for bit.
    """
    from bench.cli.console import make_console
    from bench.results.verify import verify as verify_file
    from bench.text import counted

    console = make_console()
    found = verify_file(request, console)
    for verdict in found.verdicts:
        console.say(f"{'agrees' if verdict.agrees else 'DISAGREES'}: {verdict.cell}: {verdict.reason}")
    wrong = sum(not verdict.agrees for verdict in found.verdicts)
    again = min(request.cells, found.lines)
    console.say(
        f"{counted(found.lines, 'line')} checked, {counted(again, 'cell')} chosen with seed {request.seed}: "
        + (f"{counted(wrong, 'cell')} did not agree" if wrong else "all agree")
    )
    return 1 if wrong else 0
