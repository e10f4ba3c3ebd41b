"""What stands above and below a table: how its numbers were made, and what is missing from them."""

import re
from collections.abc import Callable, Iterable, Sequence

from bench.records.config import CellConfig
from bench.records.reader import CellRecord, Run
from bench.records.schema import row_name
from reports.numbers.scores import Entry
from reports.numbers.statistics import FEWEST_SEEDS, SIGNIFICANCE
from reports.numbers.tuning import tuning_budget
from reports.tables.columns import DIFFERS, NOISE
from reports.tables.table import Footnote, Row

AS_PUBLISHED = "†"
DEPENDENT = "the domains of a seed depend on each other: with few seeds, p may be far too small"


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

    def of_configs(what: str, get: Callable[[CellConfig], str]) -> str:
        done = [(cell.row, cell.config) for cell in cells if cell.result and cell.config]
        return agreed(what, ((row, get(config)) for row, config in done))

    def of_results(what: str, get: Callable[[CellRecord], str]) -> str:
        return agreed(what, ((cell.row, get(cell)) for cell in cells if cell.result))

    version = of_configs("suite version", lambda config: str(config.suite.version))
    if version == "unknown":
        version = str(run.suite.version)
    title = f": {run.suite.title}" if run.suite.title else ""
    seeds = agreed("number of seeds", ((row.cells[0].row, str(len(row.cells))) for row in rows))
    counts = {"1": "one seed", "mixed": "mean ± sample std over seeds (their number is mixed)"}
    over = counts.get(seeds, f"mean ± sample std over {seeds} seeds")
    tuning = agreed("hyperparameters", ((cell.row, _hyperparameters(cell)) for cell in cells))
    statements = [
        f"{name_of(run, variant)} (version {version}){title}.",
        f"Top-1 accuracy in percent; {over}; selection: final round;",
        f"hyperparameters: {tuning};",
        f"validation: {of_configs('validation share', _validation)};",
        f"rounds: {of_results('number of rounds', _rounds)};",
        f"data checksum: {of_results('data checksum', _checksum)};",
        f"commit: {of_results('commit', _commit)}.",
    ]
    return " ".join(statements), footnotes


def name_of(run: Run, variant: str) -> str:
    """The suite and the variant in one."""
    return row_name(run.suite.name, variant)


def footnotes_for(rows: Sequence[Entry], table_rows: Sequence[Row], reference: str) -> list[Footnote]:
    """Explanations of the signs in use, then what failed, is unfinished, or has no finite value."""
    footnotes = sign_notes(table_rows, reference)
    if all(len(row.cells) < FEWEST_SEEDS for row in rows):
        footnotes.append(Footnote(f"Too few seeds for tests and intervals, which need {FEWEST_SEEDS}."))
    return footnotes + _gaps(rows)


def sign_notes(table_rows: Sequence[Row], reference: str = "") -> list[Footnote]:
    """Explanations of the marks and signs in use; `reference` is what the tests compare with."""
    signs = {sign for row in table_rows for cell in row.cells for sign in cell.signs}
    signs |= {sign for row in table_rows for sign in row.signs}
    footnotes = []
    if any(cell.mark for row in table_rows for cell in row.cells):
        footnotes.append(
            Footnote(
                "Bold: best, underlined: second of the federated methods in each column, by the digits shown."
            )
        )
    if bounds := [row.label for row in table_rows if row.bound]:
        footnotes.append(Footnote(f"Bounds, not ranked: {', '.join(bounds)}."))
    if DIFFERS in signs:
        footnotes.append(
            Footnote(
                f"differs from {reference} (paired t-test over seeds × domains, corrected after Holm over "
                f"the methods: p < {SIGNIFICANCE}, at least {FEWEST_SEEDS} seeds; {DEPENDENT}).",
                sign=DIFFERS,
            )
        )
    if NOISE in signs:
        footnotes.append(
            Footnote(
                "lead inside the noise (paired t-test against the second, over seeds and for AVG over seeds "
                f"× domains, corrected after Holm over the methods: p ≥ {SIGNIFICANCE}, or fewer than "
                f"{FEWEST_SEEDS} seeds).",
                sign=NOISE,
            )
        )
    if AS_PUBLISHED in signs:
        footnotes.append(
            Footnote(
                "run as the paper's code does it, best round on test included; not ranked.", sign=AS_PUBLISHED
            )
        )
    for sign in sorted(signs - {NOISE, DIFFERS, AS_PUBLISHED}):
        have, planned = sign.split("/")
        footnotes.append(Footnote(f"{have} of {planned} seeds.", sign=sign))
    return footnotes


def _gaps(rows: Sequence[Entry]) -> list[Footnote]:
    cells = [cell for row in rows for cell in row.cells]
    notes = dict.fromkeys(note for cell in cells for note in cell.provenance.data_notes)
    footnotes = [Footnote(f"Data: {note}.") for note in notes]
    failures: dict[str, list[CellRecord]] = {}
    for cell in cells:
        if cell.error is not None:
            failures.setdefault(cell.error, []).append(cell)
    for error, failed in failures.items():
        footnotes.append(Footnote(f"Failed: {_names(failed)}: {error}"))
    if unfinished := [cell for cell in cells if cell.result is None and cell.error is None]:
        footnotes.append(Footnote(f"Not finished: {_names(unfinished)}."))
    if diverged := [f"{_names([cell])} ({cell.dropped} of {cell.replies})" for cell in cells if cell.dropped]:
        footnotes.append(
            Footnote(f"Clients' replies left out, as they held NaN or infinity: {'; '.join(diverged)}.")
        )
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
    if cell.result.final.personal is not None and cell.personal is None:
        lost.append("own test")
    return lost


def _names(cells: Sequence[CellRecord]) -> str:
    """`FedAvg seeds 0, 1; FedProx β=0.1 seed 2`."""
    seeds: dict[str, list[int]] = {}
    for cell in cells:
        seeds.setdefault(cell.row, []).append(cell.seed)
    return "; ".join(
        f"{name} seed{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        for name, numbers in seeds.items()
    )


def _hyperparameters(cell: CellRecord) -> str:
    changes = ", ".join(f"{key} = {value}" for key, value in cell.settings.items())
    found = tuning_budget(cell.tuning) if cell.tuning else "suite defaults"
    if _chosen_on_other_data(cell):
        found += " of other data"
    return f"{found} except {changes}" if changes else found


def _chosen_on_other_data(cell: CellRecord) -> bool:
    tuned, tested = cell.chosen.get("data_checksum"), cell.provenance.data_checksum
    return tuned is not None and tested is not None and tuned != tested


def _validation(config: CellConfig) -> str:
    share = config.training.validation
    return f"{100 * share:g} % of train" if share else "none held out"


def _rounds(cell: CellRecord) -> str:
    return str(cell.result.rounds) if cell.result else "unknown"


def _checksum(cell: CellRecord) -> str:
    return (cell.provenance.data_checksum or "unknown")[:12]


def _commit(cell: CellRecord) -> str:
    """Twelve digits of the hash; whatever follows it, such as `-dirty`, stays."""
    commit = cell.provenance.commit or "unknown"
    return re.sub(r"^([0-9a-f]{12})[0-9a-f]+", r"\1", commit)
