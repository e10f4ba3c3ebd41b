"""Histories that a kill cut short: whatever byte it was, what is read is a beginning of what was written."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bench.records.cell_folder import CellFolder
from bench.records.schema import RoundRecord

accuracies = st.floats(0, 1) | st.just(float("nan"))
names = st.text(st.characters(codec="utf-8"), max_size=4)


@st.composite
def histories(draw: st.DrawFn) -> list[RoundRecord]:
    """Rounds 0 or 1 to n, with or without measurements, and metrics of any name."""
    first = draw(st.integers(0, 1))
    return [
        RoundRecord(
            round=first + place,
            test=draw(st.none() | st.dictionaries(names, accuracies, min_size=1, max_size=3)),
            validation=draw(st.none() | accuracies),
            bytes_up=draw(st.integers(0, 10**12)),
            metrics=draw(st.dictionaries(names, st.floats(), max_size=2)),
        )
        for place in range(draw(st.integers(1, 5)))
    ]


def as_text(rounds: list[RoundRecord]) -> list[str]:
    """For comparison: NaN is not equal to itself, but reads the same."""
    return [repr(record) for record in rounds]


@given(histories(), st.data())
def test_a_history_cut_at_any_byte_is_a_beginning_of_it(
    history: list[RoundRecord], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = CellFolder(Path(scratch))
        for record in history:
            folder.append(record)
        whole = folder.rounds_file.read_bytes()
        assert as_text(folder.rounds()) == as_text(history)
        cut = data.draw(st.integers(0, len(whole)))
        folder.rounds_file.write_bytes(whole[:cut])
        complete = whole[:cut].count(b"\n")
        assert as_text(folder.rounds()) == as_text(history[:complete])


@given(histories(), histories())
def test_rounds_computed_again_replace_those_before(
    first: list[RoundRecord], again: list[RoundRecord]
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = CellFolder(Path(scratch))
        for record in [*first, *again]:
            folder.append(record)
        expected = {record.round: record for record in [*first, *again]}
        assert as_text(folder.rounds()) == as_text([expected[number] for number in sorted(expected)])
