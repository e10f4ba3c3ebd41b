"""What stands above and below a table: how its numbers were made, and what is missing from them."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reports.columns import NOISE
from reports.records import CellRecord, Run
from reports.scores import BOUNDS, Entry
from reports.statistics import FEWEST_SEEDS, SIGNIFICANCE
from reports.table import Footnote, Row

AS_PUBLISHED = "†"


def caption(run: Run, variant: str, rows: Sequence[Entry]) -> tuple[str, list[Footnote]]:
    """The caption, and a footnote for each statement that does not hold for all records alike."""
    cells = [cell for row in rows for cell in row.cells]
    footnotes: list[Footnote] = []

    def agreed(what: str, values: Iterable[tuple[str, str]]) -> str:
        """The one value that all records share, or `mixed` and a footnote; no records, no value."""
        labels: dict[str, dict[str, None]] = {}
        for label, value in values:
            labels.setdefault(value, {})[label] = None
        if len(labels) > 1:
            found = "; ".join(f"{value} ({', '.join(who)})" for value, who in labels.items())
            footnotes.append(Footnote(f"Mixed {what}: {found}."))
            return "mixed"
        return next(iter(labels), "unknown")

    def of_configs(what: str, get: Callable[[Any], str]) -> str:
        done = [cell for cell in cells if cell.result and cell.config]
        return agreed(what, ((_name(cell), get(cell.config)) for cell in done))

    def of_results(what: str, get: Callable[[Any], str]) -> str:
        return agreed(what, ((_name(cell), get(cell.result)) for cell in cells if cell.result))

    version = of_configs("suite version", lambda config: str(config["suite"]["version"]))
    if version == "unknown":
        version = str(run.suite.version)
    name = " ".join(filter(None, (run.suite.name, variant)))
    title = f": {run.suite.title}" if run.suite.title else ""
    seeds = agreed("number of seeds", ((_name(row.cells[0]), str(len(row.cells))) for row in rows))
    counts = {"1": "one seed", "mixed": "mean ± sample std over seeds (their number is mixed)"}
    over = counts.get(seeds, f"mean ± sample std over {seeds} seeds")
    statements = [
        f"{name} (version {version}){title}.",
        f"Top-1 accuracy in percent; {over}; selection: final round;",
        f"hyperparameters: {_tuning(run)};",
        f"validation: {of_configs('validation share', _validation)};",
        f"rounds: {of_results('number of rounds', lambda result: str(result['rounds']))};",
        f"data checksum: {of_results('data checksum', _checksum)};",
        f"commit: {of_results('commit', _commit)}.",
    ]
    return " ".join(statements), footnotes


def footnotes_for(rows: Sequence[Entry], table_rows: Iterable[Row]) -> list[Footnote]:
    """Explanations of the signs in use, then what failed, is unfinished, or has no finite value."""
    table_rows = list(table_rows)
    signs = {sign for row in table_rows for cell in row.cells for sign in cell.signs}
    signs |= {sign for row in table_rows for sign in row.signs}
    footnotes = []
    if any(cell.mark for row in table_rows for cell in row.cells):
        footnotes.append(
            Footnote(
                "Bold: best, underlined: second of the federated methods in each column, by the digits "
                "shown; only leads on AVG are tested."
            )
        )
    if bounds := [row.label for row in table_rows if row.method in BOUNDS]:
        footnotes.append(Footnote(f"Bounds, not ranked: {', '.join(bounds)}."))
    if NOISE in signs:
        footnotes.append(
            Footnote(
                "lead inside the noise (paired t-test over seeds × domains against the second, corrected "
                f"after Holm over the methods: p ≥ {SIGNIFICANCE}, or fewer than {FEWEST_SEEDS} seeds).",
                sign=NOISE,
            )
        )
    if AS_PUBLISHED in signs:
        footnotes.append(
            Footnote(
                "run as the paper's code does it, best round on test included; not ranked.", sign=AS_PUBLISHED
            )
        )
    for sign in sorted(signs - {NOISE, AS_PUBLISHED}):
        have, planned = sign.split("/")
        footnotes.append(Footnote(f"{have} of {planned} seeds.", sign=sign))
    return footnotes + _gaps(rows)


def _gaps(rows: Sequence[Entry]) -> list[Footnote]:
    cells = [cell for row in rows for cell in row.cells]
    results = [cell.result for cell in cells if cell.result]
    notes = dict.fromkeys(note for result in results for note in result["provenance"].get("data_notes", ()))
    footnotes = [Footnote(f"Data: {note}.") for note in notes]
    failures: dict[str, list[CellRecord]] = {}
    for cell in cells:
        if cell.error is not None:
            failures.setdefault(cell.error, []).append(cell)
    for error, failed in failures.items():
        footnotes.append(Footnote(f"Failed: {_names(failed)}: {error}"))
    if unfinished := [cell for cell in cells if cell.result is None and cell.error is None]:
        footnotes.append(Footnote(f"Not finished: {_names(unfinished)}."))
    for row in rows:
        for cell in row.cells:
            if lost := _not_finite(cell, row.domains):
                where = f"{_names([cell])} on {', '.join(lost)}"
                footnotes.append(Footnote(f"No finite value, treated as missing: {where}."))
    return footnotes


def _not_finite(cell: CellRecord, domains: Sequence[str]) -> list[str]:
    if cell.result is None:
        return []
    lost = [domain for domain in domains if cell.accuracy(domain) is None]
    if cell.result["final"].get("personal") is not None and cell.personal is None:
        lost.append("own test")
    return lost


def _names(cells: Sequence[CellRecord]) -> str:
    """`FedAvg seeds 0, 1; FedProx β=0.1 seed 2`."""
    seeds: dict[str, list[int]] = {}
    for cell in cells:
        seeds.setdefault(_name(cell), []).append(cell.seed)
    return "; ".join(
        f"{name} seed{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        for name, numbers in seeds.items()
    )


def _name(cell: CellRecord) -> str:
    return " ".join(filter(None, (cell.label, cell.variant)))


def _tuning(run: Run) -> str:
    if run.tuning:
        stated = {key: value for key, value in run.tuning.items() if key != "methods"}
        budget = "tuned (" + ", ".join(f"{key}: {value}" for key, value in stated.items()) + ")"
        return budget + (f" except {_changes(run)}" if run.settings else "")
    return f"suite defaults except {_changes(run)}" if run.settings else "suite defaults"


def _changes(run: Run) -> str:
    return ", ".join(f"{key} = {value}" for key, value in run.settings.items())


def _validation(config: Any) -> str:
    share = config["training"].get("validation", 0.0)
    return f"{100 * share:g} % of train" if share else "none held out"


def _checksum(result: Any) -> str:
    return (result["provenance"].get("data_checksum") or "unknown")[:12]


def _commit(result: Any) -> str:
    """Twelve digits of the hash; whatever follows it, such as `-dirty`, stays."""
    commit = result["provenance"].get("commit") or "unknown"
    return re.sub(r"^([0-9a-f]{12})[0-9a-f]+", r"\1", commit)
