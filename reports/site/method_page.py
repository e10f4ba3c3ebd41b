"""The page of a method: what it is, its hyperparameters, and how it did in every suite."""

import statistics
from collections.abc import Sequence
from html import escape

from bench.records.schema import row_name
from reports.site.facts import Facts, Standing
from reports.site.shell import document, grid, link, section
from reports.tables.table import MISSING, number, signed_number

WIDEST = 10.0
"""Points of Δ that fill the width of a bar."""


def method_page(facts: Facts, name: str) -> str:
    info, rows = facts.methods.get(name), facts.standings[name]
    parts = [_results(rows)]
    if tuned := [each for each in rows if each.tuned is not None]:
        parts.append(section("Tuned values", _tuned(tuned), name="tuned"))
    if info and info.hyperparameters:
        table = grid(
            ("Hyperparameter", "Default", "Allowed", "Paper", "Search range", "Meaning"),
            [
                (
                    f"<code>{escape(each.name)}</code>",
                    *map(escape, (each.default, each.allowed, each.paper, each.searched, each.meaning)),
                )
                for each in info.hyperparameters
            ],
            texts=6,
        )
        parts.append(section("Hyperparameters", table, name="hyperparameters"))
    if info and info.text:
        parts.append(
            section("Definition", f'<pre class="definition">{escape(info.text)}</pre>\n', name="definition")
        )
    summary = escape(info.summary) if info else ""
    lead = (
        f'<p class="lead">{summary}</p>'
        f'<p class="meta"><span><code>{escape(name)}</code></span>{_wins(rows)}</p>'
    )
    return document(facts.label(name), "".join(parts), 1, lead)


def _wins(rows: Sequence[Standing]) -> str:
    gains = [statistics.fmean(each.gains) for each in rows if each.gains]
    if not gains:
        return ""
    ahead = sum(gain > 0 for gain in gains)
    return (
        f"<span>ahead of FedAvg in <b>{ahead} of {len(gains)}</b> rows</span>"
        f"<span>mean Δ <b>{signed_number(statistics.fmean(gains))}</b></span>"
    )


def _results(rows: Sequence[Standing]) -> str:
    if not rows:
        return section("Results", "<p>No results yet.</p>\n", name="results")
    table = grid(
        ("Suite", "Row", "AVG", "Δ to FedAvg", "", "Place", "MB sent", "Seconds"),
        [_result(each) for each in rows],
        texts=2,
    )
    note = (
        '<p class="caption">AVG: mean ± standard deviation over seeds of the accuracy of the final round, in '
        "percent. Δ: mean difference to FedAvg over the seeds that both have. Place: among the rows of the "
        "table without the bounds. MB sent and seconds: of a whole run, mean over seeds.</p>\n"
    )
    return section("Results", table, note, name="results")


def _result(each: Standing) -> tuple[str, ...]:
    suite = link("suites", each.run.suite.name, row_name(each.run.suite.name, each.variant), 1)
    gain = statistics.fmean(each.gains) if each.gains else None
    return (
        suite,
        escape(each.row.label),
        _mean(each.averages),
        MISSING if gain is None else signed_number(gain),
        "" if gain is None else _bar(gain),
        f"{each.place} of {each.ranked}" if each.place else MISSING,
        MISSING if each.megabytes is None else f"{each.megabytes:.3g}",
        MISSING if each.seconds is None else f"{each.seconds:.1f}",
    )


def _mean(values: Sequence[float]) -> str:
    if not values:
        return MISSING
    spread = f' <span class="spread">± {number(statistics.stdev(values))}</span>' if len(values) > 1 else ""
    return number(statistics.fmean(values)) + spread


def _bar(gain: float) -> str:
    """To the right of the middle where the method is ahead, to the left where it is behind."""
    width = min(abs(gain) / WIDEST, 1.0) * 50
    side = "left" if gain >= 0 else "right"
    kind = "ahead" if gain >= 0 else "behind"
    place = f"{side}:50%;width:{width:.1f}%"
    return f'<span class="delta" aria-hidden="true"><i class="{kind}" style="{place}"></i></span>'


def _tuned(rows: Sequence[Standing]) -> str:
    def words(each: Standing) -> str:
        chosen = each.tuned or {}
        return ", ".join(f"{key} = {_short(value)}" for key, value in chosen.items()) or "the defaults"

    seen = {
        (each.run.suite.name, words(each)): (
            link("suites", each.run.suite.name, each.run.suite.name, 1),
            escape(words(each)),
        )
        for each in rows
    }
    return grid(("Suite", "Chosen on validation data"), list(seen.values()), texts=2)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
