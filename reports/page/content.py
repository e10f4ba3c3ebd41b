"""The content of the page as plain data, compact because there may be a thousand cells."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.records.reader import Run
from bench.records.schema import PartitionRecord
from reports.numbers.history import state_of
from reports.numbers.scores import BOUNDS, domains_of
from reports.page.cells import cell_content
from reports.page.command import rerun_commands
from reports.page.numbers import short
from reports.page.papers import paper_content
from reports.page.problems import problems
from reports.page.sensitivity import sensitivity_content
from reports.tables.table import Entry, Table


def page_content(run: Run, tables: Sequence[Table]) -> dict[str, Any]:
    """Everything that the page shows, ready for JSON."""
    keys = list(dict.fromkeys((cell.method, cell.label) for cell in run.cells))
    lines = {key: place for place, key in enumerate(keys)}
    variants = {variant: place for place, variant in enumerate(run.variants)}
    domains = {variant: domains_of(run, variant) for variant in variants}
    return {
        "suite": {
            "name": run.suite.name,
            "version": run.suite.version,
            "title": run.suite.title,
        },
        "variants": [{"name": name, "domains": domains[name]} for name in variants],
        "lines": [{"method": method, "label": label, "bound": method in BOUNDS} for method, label in keys],
        "problems": problems(run),
        "tables": [_table(table, lines) for table in tables],
        "cells": [
            {
                "line": lines[cell.method, cell.label],
                "variant": variants[cell.variant],
                "state": state_of(cell),
                "command": command,
                **cell_content(cell, domains[cell.variant]),
            }
            for cell, command in zip(run.cells, rerun_commands(run), strict=True)
        ],
        **sensitivity_content(run),
        "partition": _partition(run.partition) if run.partition else None,
        "papers": paper_content(run, lines, variants),
    }


def _table(table: Table, lines: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    return {
        "variant": table.variant,
        "name": table.name,
        "reference": table.reference,
        "caption": table.caption,
        "columns": list(table.columns),
        "footnotes": [[note.sign, note.text] for note in table.footnotes],
        "sections": [
            [
                {
                    "line": lines.get((row.method, row.label)),
                    "label": row.label,
                    "bound": row.bound,
                    "signs": list(row.signs),
                    "entries": [_table_entry(entry) for entry in row.entries],
                }
                for row in section
            ]
            for section in table.sections
        ],
    }


def _table_entry(entry: Entry) -> dict[str, Any]:
    content = {
        "text": entry.text,
        "mean": short(entry.mean, 6),
        "std": short(entry.std, 6),
        "n": entry.n or None,
        "mark": entry.mark,
        "signs": list(entry.signs),
        "interval": [short(bound, 6) for bound in entry.interval or ()],
        "p": short(entry.p, 3),
        "p_best": short(entry.p_best, 3),
    }
    return {key: value for key, value in content.items() if value is not None and value not in ("", [])}


def _partition(partition: PartitionRecord) -> dict[str, Any]:
    clients = [[client.name, client.domain, list(client.counts)] for client in partition.clients]
    return {"classes": list(partition.classes), "clients": clients, "setting": partition.setting}
