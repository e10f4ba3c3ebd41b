"""`bench site`: all results as a static site."""

from __future__ import annotations

from bench.cli.request_options import command_of
from bench.results.request import SiteRequest


@command_of(SiteRequest, positional=("results",))
def site(request: SiteRequest) -> None:
    """Write a static, searchable site of all results; open its index.html, no server is needed."""
    from bench.cli.console import make_console
    from bench.results.site import site as make_site
    from bench.text import counted

    console = make_console()
    made = make_site(request, console)
    console.say(f"{counted(made.suites, 'suite')}: {made.index}")
