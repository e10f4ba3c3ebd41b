"""One table as a piece of HTML: structure and data, no styling and no script."""

from html import escape

from reports.tables.table import Entry, Row, Table, number, plain_number, probability


def to_html(table: Table) -> str:
    """A `<section>` with the table and a list of its footnotes.

    Body entries carry `data-value` for sorting by number, `data-n`, `data-low`, `data-high`, `data-p` and
    `data-p-best` where they exist, and a title with the same in words.
    """
    bodies = "".join(f"<tbody>\n{_rows(section, table)}</tbody>\n" for section in table.sections)
    notes = "".join(
        f"<li>{_signs((note.sign,))}{' ' if note.sign else ''}{escape(note.text)}</li>\n"
        for note in table.footnotes
    )
    about = _attributes({"suite": table.suite, "variant": table.variant, "table": table.name})
    return (
        f"<section{about}>\n<table>\n<caption>{escape(table.caption)}</caption>\n"
        f"<thead>\n{_head(table)}</thead>\n{bodies}</table>\n<ul>\n{notes}</ul>\n</section>\n"
    )


def _head(table: Table) -> str:
    if not table.groups:
        columns = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
        return f'<tr><th scope="col">Method</th>{columns}</tr>\n'
    above, below = ['<th scope="col" rowspan="2">Method</th>'], []
    for title, names in table.headings:
        if title:
            above.append(f'<th scope="colgroup" colspan="{len(names)}">{escape(title)}</th>')
            below += [f'<th scope="col">{escape(name)}</th>' for name in names]
        else:
            above.append(f'<th scope="col" rowspan="2">{escape(names[0])}</th>')
    return f"<tr>{''.join(above)}</tr>\n<tr>{''.join(below)}</tr>\n"


def _rows(rows: tuple[Row, ...], table: Table) -> str:
    return "".join(
        f"<tr{_attributes({'method': row.method})}>{_label(row)}"
        + "".join(_entry(entry, table.reference) for entry in row.entries)
        + "</tr>\n"
        for row in rows
    )


def _label(row: Row) -> str:
    label = escape(row.label)
    return f'<th scope="row">{f"<i>{label}</i>" if row.bound else label}{_signs(row.signs)}</th>'


def _entry(entry: Entry, reference: str) -> str:
    text = escape(entry.text)
    if entry.mark:
        text = f"<b>{text}</b>" if entry.mark == "best" else f"<u>{text}</u>"
    low, high = entry.interval or (None, None)
    data = _attributes(
        {
            "value": plain_number(entry.mean),
            "n": str(entry.n) if entry.n else "",
            "low": plain_number(low),
            "high": plain_number(high),
            "p": plain_number(entry.p),
            "p-best": plain_number(entry.p_best),
        }
    )
    words = _in_words(entry, reference)
    title = f' title="{escape(words)}"' if words else ""
    return f"<td{data}{title}>{text}{_signs(entry.signs)}</td>"


def _in_words(entry: Entry, reference: str) -> str:
    parts = []
    if entry.n:
        parts.append(f"{entry.n} seed{'s' if entry.n > 1 else ''}")
    if entry.interval is not None:
        parts.append(f"95 % interval {number(entry.interval[0])} to {number(entry.interval[1])}")
    if entry.p is not None and reference:
        parts.append(f"p {_probability(entry.p)} against {reference}")
    if entry.p_best is not None:
        parts.append(f"p {_probability(entry.p_best)} against the best")
    return "; ".join(parts)


def _probability(p: float) -> str:
    text = probability(p)
    return text if text.startswith("<") else f"= {text}"


def _attributes(data: dict[str, str]) -> str:
    """`data-` attributes; those without a value are left out."""
    return "".join(f' data-{name}="{escape(value)}"' for name, value in data.items() if value)


def _signs(signs: tuple[str, ...]) -> str:
    shown = ", ".join(filter(None, signs))
    return f"<sup>{escape(shown)}</sup>" if shown else ""
