"""`bench tune --widen`: whether the ranges of a search are made wider, and to what.

A search keeps its journal and its folder: its trials count as before, and later ones are drawn from the wider
ranges. It is made wider only when it is complete, so after a kill the same command resumes it as it is.
"""

from __future__ import annotations

from bench.search.bounds import at_bound, wider
from bench.search.budget import Budget, Limits
from bench.search.finish import DataFacts, selection_of
from bench.search.plan import Search
from bench.search.space import describe_distribution
from bench.search.tuned import Tuned


def widening(search: Search, limits: Limits, data: DataFacts) -> tuple[dict[str, list[float]], str]:
    """The ranges to make wider, empty if none is, and what to say about it."""
    journal = search.journal()
    selection = selection_of(search, journal, limits, data)
    if selection is None or not (selection.stands and Budget(search, limits).complete(journal)):
        return {}, "the search is not complete and goes on with its present ranges"
    ends = at_bound(search.space, search.method, selection.candidates[0].trial.values)
    ranges = wider(search.space, search.method, ends)
    if not ends:
        return {}, "no value of the best trial is at an end of its range; nothing to widen"
    listed = sorted(ends.keys() - ranges.keys())
    parts = [
        f"{key} from {describe_distribution(search.space.domains[key])} to {low:g}–{high:g}"
        for key, (low, high) in ranges.items()
    ]
    if listed:
        parts.append(f"not {', '.join(listed)}, whose values are listed; give more with --sweep")
    return ranges, f"widening {'; '.join(parts)}"


def wider_ranges(search: Search, tuned: Tuned) -> dict[str, list[float]]:
    """What `--widen` would make of the ranges whose end the best value lies at."""
    return wider(search.space, search.method, at_bound(search.space, search.method, tuned.best.set))


def in_words(search: Search, tuned: Tuned) -> str:
    """Which of the best values lie at an end of their range."""
    values = search.space.default | tuned.best.set
    ends = [
        f"{key} = {values[key]} is at the {end} end of {describe_distribution(search.space.domains[key])}"
        for key, end in tuned.at_bound.items()
    ]
    return f"{search.row}: the best {' and '.join(ends)}; a better value may lie beyond"


def ranges_of(search: Search) -> dict[str, list[float]]:
    """The ranges that differ from those that the search began with."""
    if search.unwidened is None:
        return {}
    first = search.unwidened.domains
    return {key: list(domain.values) for key, domain in search.space.domains.items() if domain != first[key]}
