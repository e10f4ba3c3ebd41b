"""The page of one method or wrapper."""

import statistics
from collections.abc import Iterator, Sequence

from bench.records.schema import row_name
from reports.docs.facts import Described, Traffic
from reports.docs.prose import prose
from reports.render.markdown import escape, pipe_table
from reports.site.facts import Standing
from reports.tables.table import MISSING, number, signed_number

ROOT = "../../"
"""From a page to the root of the repository."""
EXPLAINED = (
    "AVG: mean ± standard deviation over seeds of the accuracy of the final round, in percent. Δ: mean "
    "difference to FedAvg over the seeds that both have. Place: among the rows of the "
    "table without the bounds."
)


def method_page(described: Described, standings: Sequence[Standing]) -> str:
    """Definition, hyperparameters, messages, requirements, suites and results."""
    name = f"{described.name}+METHOD" if described.wrapper else described.name
    files = f"[source]({ROOT}{described.source}) · [search space]({ROOT}{described.space})"
    return "\n".join(
        [
            f"# {escape(described.info.label)}",
            "",
            f"`{name}` · {described.group} · {files}",
            "",
            prose(described.info.text),
            "",
            "## Hyperparameters",
            "",
            *_hyperparameters(described),
            "",
            described.neutral,
            "",
            "## Messages",
            "",
            *_messages(described),
            "",
            "## Requirements",
            "",
            *_requirements(described),
            "",
            "## Suites",
            "",
            *_suites(described),
            "",
            "## Results",
            "",
            *_results(standings),
            "",
        ]
    )


def _hyperparameters(described: Described) -> list[str]:
    return pipe_table(
        ("Hyperparameter", "Default", "Allowed", "Paper", "Search range", "Meaning"),
        [
            (
                f"`{each.name}`",
                *map(escape, (each.default, each.allowed, each.paper, each.searched or "not searched")),
                prose(each.meaning),
            )
            for each in described.info.hyperparameters
        ],
        texts=6,
    )


def _messages(described: Described) -> Iterator[str]:
    found = described.examination
    around = " Around FedAvg:" if described.wrapper else ""
    yield f"What short runs on a small model send; bytes are counted from these entries.{around}"
    yield ""
    exchanges = {"before round 1": found.before, "every round": found.rounds}
    yield from pipe_table(
        ("", "Server to client", "Client to server"),
        [
            (when, _entries(traffic.down), _entries(traffic.up))
            for when, traffic in exchanges.items()
            if traffic != Traffic()
        ]
        or [("every round", MISSING, MISSING)],
        texts=3,
    )
    yield ""
    yield f"A client keeps to itself: {_entries(found.private) if found.private else 'nothing'}."


def _entries(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or MISSING


def _requirements(described: Described) -> Iterator[str]:
    found = described.examination
    yield f"Runs on {'; '.join(found.accepted)}."
    if found.refused:
        yield ""
    for sentence, abouts in found.refused.items():
        yield f"- refused with {'; '.join(abouts)}: “{prose(sentence)}”"


def _suites(described: Described) -> Iterator[str]:
    if not described.suites:
        yield "No shipped suite compares it."
    for partition, suites in described.suites.items():
        links = ", ".join(f"[{suite}]({ROOT}bench/suites/{suite}.yaml)" for suite in suites)
        yield f"- partition `{partition}`: {links}"


def _results(standings: Sequence[Standing]) -> Iterator[str]:
    if not standings:
        yield f"None in [results]({ROOT}results) yet."
        return
    yield from pipe_table(
        ("Suite", "Row", "AVG", "Δ to FedAvg", "Place"), [_result(each) for each in standings], texts=2
    )
    yield ""
    yield EXPLAINED


def _result(each: Standing) -> tuple[str, ...]:
    gain = statistics.fmean(each.gains) if each.gains else None
    spread = f" ± {number(statistics.stdev(each.averages))}" if len(each.averages) > 1 else ""
    return (
        escape(row_name(each.run.suite.name, each.variant)),
        escape(each.row.label),
        number(statistics.fmean(each.averages)) + spread if each.averages else MISSING,
        MISSING if gain is None else signed_number(gain),
        f"{each.place} of {each.ranked}" if each.place else MISSING,
    )
