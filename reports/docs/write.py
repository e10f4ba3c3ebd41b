"""Makes the pages and writes them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.records.files import write_atomically
from bench.records.reader import Run
from reports.docs.facts import Described
from reports.docs.index_page import index_page
from reports.docs.method_page import method_page
from reports.site.facts import Facts

NOTE = "<!-- Made by `make docs`; edit the source of the method instead of this page. -->\n"
INDEX = "README.md"


def pages(described: Sequence[Described], runs: Sequence[Run]) -> dict[str, str]:
    """File name → content: the index and one page per method and wrapper."""
    standings = Facts(runs, {}).standings
    made = {INDEX: index_page(described)}
    for each in described:
        rows = [
            standing
            for method in sorted(standings)
            if method == each.name or (each.wrapper and method.startswith(f"{each.name}+"))
            for standing in standings[method]
        ]
        made[f"{each.name}.md"] = method_page(each, rows)
    return {name: NOTE + text for name, text in made.items()}


def write_docs(described: Iterable[Described], runs: Sequence[Run], target: Path) -> Path:
    """Write all pages, remove those of methods that are gone, and return the index."""
    made = pages(list(described), runs)
    for name, text in made.items():
        write_atomically(target / name, text)
    for file in target.glob("*.md"):
        if file.name not in made and file.read_text(encoding="utf-8").startswith(NOTE):
            file.unlink()
    return target / INDEX
