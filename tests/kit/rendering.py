"""Tables that are hard to render."""

from reports.tables.table import Entry, Footnote, Row, Table

NASTY = 'A_b & 50% #1 {x} ~^\\ $y$ [z] "q" <β|λ₁> 漢 ü *s*'


GROUPED = Table(
    suite="pairs",
    variant="",
    caption="With and without",
    columns=("L_COM", "AVG plain", "AVG <b>", "AVG gain"),
    sections=(
        (
            Row(
                "fedavg",
                "FedAvg",
                (
                    Entry("✓", mean=1.0),
                    Entry("60.00"),
                    Entry("70.00"),
                    Entry("+10.00", p=0.0004, signs=("*",)),
                ),
            ),
        ),
    ),
    footnotes=(Footnote("a note"),),
    groups=("", "AVG", "AVG", "AVG"),
    reference="the method & nothing else",
)


def numbers(entry: Entry) -> tuple[float | None, ...]:
    low, high = entry.interval or (None, None)
    return entry.mean, entry.std, entry.n, low, high, entry.p, entry.p_best
