"""The caption of a table: how its numbers were made."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.config.cell import CellConfig
from bench.records.reader import CellRecord, Run
from bench.records.schema import DEFAULT_ROW, row_name
from bench.text import counted
from reports.numbers.scores import RowScores
from reports.numbers.swept import is_off_default
from reports.numbers.tuning import tuning_budget
from reports.tables.notes import at_bound, still_improving
from reports.tables.table import Footnote

MOST_NAMED = 8
"""Rows of a group that a footnote names one by one."""


def caption(run: Run, variant: str, rows: Sequence[RowScores]) -> tuple[str, list[Footnote]]:
    """The caption, and a footnote for each statement in which the records disagree."""
    cells = [cell for row in rows for cell in row.cells]
    footnotes: list[Footnote] = []

    def agreed(what: str, values: Iterable[tuple[str, str]]) -> str:
        """The value that all records share, or `mixed` and a footnote; `unknown` without records."""
        labels: dict[str, dict[str, None]] = {}
        for label, value in values:
            labels.setdefault(value, {})[label] = None
        if len(labels) > 1:
            footnotes.append(Footnote(f"Mixed {what}: {_who_has_what(labels)}."))
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
    counts = {"1": "one seed", "mixed": "mean ± sample std over seeds (numbers of seeds differ)"}
    over = counts.get(seeds, f"mean ± sample std over {seeds} seeds")
    tuned = [cell for row in rows for cell in row.cells if not row.default]
    tuning = agreed("hyperparameters", ((cell.row, _hyperparameters(cell)) for cell in tuned))
    if len(tuned) < len(cells):
        tuning += f"; suite defaults in rows marked{DEFAULT_ROW}"
    chosen = [(row.cells[0].row, rounds) for row in rows if (rounds := row.chosen_rounds())]
    selection = "best round on validation" if chosen else "final round"
    if chosen:
        footnotes.append(_chosen_rounds(chosen))
    rising = dict.fromkeys(row.cells[0].row for row in rows if still_improving(row))
    improving = [f"still improving at the last round: {', '.join(rising)};"] if rising else []
    ends = [f"tuned to an end of the search range: {'; '.join(found)};"] if (found := at_bound(rows)) else []
    encoders = any(cell.config and cell.config.encoder for cell in cells)
    encoder = [f"encoder: {of_configs('encoder', _encoder)};"] if encoders else []
    attacked = any(cell.config and cell.config.attackers for cell in cells)
    attackers = [f"attackers: {of_configs('attackers', _attackers)};"] if attacked else []
    statements = [
        f"{name_of(run, variant)} (version {version}){title}.",
        f"Top-1 accuracy in percent; {over}; selection: {selection};",
        *encoder,
        *attackers,
        f"hyperparameters: {tuning};",
        *ends,
        f"validation: {of_configs('validation share', _validation)};",
        f"rounds: {of_results('number of rounds', _rounds)};",
        *improving,
        f"data checksum: {of_results('data checksum', _checksum)};",
        f"commit: {of_results('commit', _commit)}.",
    ]
    return " ".join(statements), footnotes


def _who_has_what(labels: Mapping[str, Iterable[str]]) -> str:
    """Value by value the rows that have it; where most have one, they are not all named."""
    rows = {value: list(who) for value, who in labels.items()}
    usual = max(rows, key=lambda value: len(rows[value]))
    others = {value: who for value, who in rows.items() if value != usual}
    apart = {row for who in others.values() for row in who}
    if len(rows[usual]) > MOST_NAMED and not apart & set(rows[usual]):
        rows = {**others, usual: ["all other rows"]}
    return "; ".join(f"{value} ({', '.join(who)})" for value, who in rows.items())


def name_of(run: Run, variant: str) -> str:
    """The names of the suite and the variant."""
    return row_name(run.suite.name, variant)


def _hyperparameters(cell: CellRecord) -> str:
    changes = ", ".join(f"{key} = {value}" for key, value in cell.settings.items())
    found = tuning_budget(cell.tuning) if cell.tuning else "suite defaults"
    if is_off_default(cell):
        found += " and swept values"
    if _chosen_on_other_data(cell):
        found += ", on other data"
    return f"{found} except {changes}" if changes else found


def _chosen_on_other_data(cell: CellRecord) -> bool:
    tuned, tested = cell.chosen.get("data_checksum"), cell.provenance.data_checksum
    return tuned is not None and tested is not None and tuned != tested


def _encoder(config: CellConfig) -> str:
    if config.encoder is None:
        return "none"
    return config.encoder.name + (", features scaled to length 1" if config.encoder.normalised else "")


def _attackers(config: CellConfig) -> str:
    if config.attackers is None:
        return "none"
    attack = config.attackers
    words = {
        "sign_flip": f"send updates times −{attack.scale:g}",
        "noise": f"send noise of standard deviation {attack.scale:g}",
        "label_flip": "train on flipped labels",
    }
    return f"{100 * attack.share:g} % of the clients {words[attack.kind]}"


def _validation(config: CellConfig) -> str:
    share = config.training.validation
    return f"{100 * share:g} % of train" if share else "none held out"


def _rounds(cell: CellRecord) -> str:
    if cell.result is None:
        return "unknown"
    if cell.result.selected and cell.config and (rule := cell.config.training.early_stop):
        waited = counted(rule.patience, "measurement")
        return f"at most {cell.config.training.rounds}, stopped after {waited} without a better one"
    return str(cell.result.rounds)


def _chosen_rounds(rows: Sequence[tuple[str, Mapping[int, tuple[int, int]]]]) -> Footnote:
    """Per row and seed, the round that was chosen and the one after which the run stopped."""
    parts = [
        f"{name} {', '.join(f'{chosen} of {last}' for _, (chosen, last) in sorted(rounds.items()))}"
        for name, rounds in rows
    ]
    return Footnote(f"Rounds chosen by early stopping, by seed: {'; '.join(parts)}.")


def _checksum(cell: CellRecord) -> str:
    return (cell.provenance.data_checksum or "unknown")[:12]


def _commit(cell: CellRecord) -> str:
    """Twelve digits of the hash, with whatever follows it, such as `+`."""
    commit = cell.provenance.commit or "unknown"
    return re.sub(r"^([0-9a-f]{12})[0-9a-f]+", r"\1", commit)
