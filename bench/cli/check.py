"""`bench check`: hold methods to the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bench.errors import UserError

ALL = "all"


def check(
    methods: Annotated[list[str], typer.Argument(help="Names of methods, paths of Python files, or all.")],
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a hyperparameter; may be repeated."),
    ] = None,
) -> None:
    """Hold methods to the contract that every method of a table keeps."""
    from bench.cli.console import make_console
    from bench.contract import check as check_method
    from bench.suite.methods import METHODS

    names = [name for each in methods for name in (registered() if each == ALL else [each])]
    hyperparameters = _hyperparameters(assignments or [])
    console = make_console()
    for name in names:
        METHODS.load(name)  # a wrong name is reported before anything is run
    outcomes = []
    for name in names:
        report = check_method(name, hyperparameters)
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
    raise typer.Exit(0 if all(outcomes) else 1)


def registered() -> list[str]:
    """Every registered method, and every wrapper around FedAvg."""
    from bench.suite.methods import AROUND, METHODS, WRAPPERS

    return [*METHODS.names(), *(f"{wrapper}{AROUND}fedavg" for wrapper in WRAPPERS.names())]


def _hyperparameters(assignments: Sequence[str]) -> dict[str, Any]:
    from bench.suite.overrides import parse_assignment

    values = {}
    for text in assignments:
        key, value = parse_assignment(text)
        if "." in key:
            raise UserError(f"--set {text}: give the name of a hyperparameter alone, such as mu=0.1")
        values[key] = value
    return values
