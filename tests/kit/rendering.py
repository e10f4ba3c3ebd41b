"""Tables that are hard to render."""

from reports.tables.table import Cell, Footnote, Row, Table

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
                (Cell("✓", mean=1.0), Cell("60.00"), Cell("70.00"), Cell("+10.00", p=0.0004, signs=("*",))),
            ),
        ),
    ),
    footnotes=(Footnote("a note"),),
    groups=("", "AVG", "AVG", "AVG"),
    reference="the method & nothing else",
)


def numbers(cell: Cell) -> tuple[float | None, ...]:
    low, high = cell.interval or (None, None)
    return cell.mean, cell.std, cell.n, low, high, cell.p, cell.p_best
