"""The list of all pages: methods and wrappers under the headings of their groups."""

from collections.abc import Iterator, Sequence

from reports.docs.facts import Described
from reports.docs.prose import prose
from reports.render.markdown import escape, pipe_table

INTRODUCTION = """\
One page per method, made by `make docs` from its docstring, its search space, short runs on small models, the
shipped suites and the results in this repository. Its group follows from what it needs, sends and changes.
*Compared under* has the partitions of the shipped suites with the method: `by_domain` and `lds` give clients
different domains, `dirichlet` and `shards` different labels."""
WRAPPERS = "Wrappers"


def index_page(described: Sequence[Described]) -> str:
    return "\n".join(["# Methods", "", INTRODUCTION, "", *_groups(described)])


def _groups(described: Sequence[Described]) -> Iterator[str]:
    """Headings in the order of the alphabet, wrappers last."""
    for group in [*sorted({each.group for each in described if not each.wrapper}), WRAPPERS]:
        yield from (f"## {group}", "")
        members = [each for each in described if each.group == group]
        yield from pipe_table(
            ("Method", "Name", "What it does", "Compared under"), [_row(each) for each in members], texts=4
        )
        yield ""


def _row(each: Described) -> tuple[str, ...]:
    name = f"{each.name}+METHOD" if each.wrapper else each.name
    summary = each.info.summary.partition(": ")[2] or each.info.summary
    partitions = ", ".join(f"`{partition}`" for partition in sorted(each.suites))
    return f"[{escape(each.info.label)}]({each.name}.md)", f"`{name}`", prose(summary), partitions
