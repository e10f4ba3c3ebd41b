"""`bench check`: hold methods to the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.cli.inspection_requests import CheckRequest
from bench.cli.request_options import command_of
from bench.errors import UserError

ALL = "all"


@command_of(CheckRequest, positional=("methods",))
def check(request: CheckRequest) -> int:
    """Hold methods to the contract that every method of a table keeps."""
    from bench.cli.console import make_console
    from bench.contract import check as check_method
    from bench.suite.methods import METHODS

    names = [name for each in request.methods for name in (registered() if each == ALL else [each])]
    _refuse_paths(request.overrides)
    console = make_console()
    for name in names:
        METHODS.load(name)  # a wrong name is reported before anything is run
    outcomes = []
    for name in names:
        report = check_method(name, request.overrides)
        if len(names) == 1:
            for verdict in report.verdicts:
                console.say(str(verdict))
        else:
            for finding in report.findings:
                console.say(f"✗ {finding.rule}: {finding}")
        console.say(("✓ " if report.passed else "✗ ") + report.summary)
        outcomes.append(report.passed)
    if len(names) > 1:
        console.say(f"{sum(outcomes)} of {len(outcomes)} methods pass the contract")
    return 0 if all(outcomes) else 1


def registered() -> list[str]:
    """Every registered method, and every wrapper around FedAvg."""
    from bench.suite.methods import AROUND, METHODS, WRAPPERS

    return [*METHODS.names(), *(f"{wrapper}{AROUND}fedavg" for wrapper in WRAPPERS.names())]


def _refuse_paths(overrides: Mapping[str, Any]) -> None:
    for key in overrides:
        if "." in key:
            raise UserError(f"--set {key}: give the name of a hyperparameter alone, such as mu=0.1")
