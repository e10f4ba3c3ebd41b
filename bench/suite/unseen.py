"""A suite that leaves out every domain in turn, written out as one variant per domain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.data import spec_of_section
from bench.errors import UserError
from bench.suite.model import EACH, Suite, TableLayout, Variant

WHOLE = Variant(name="", set={})
"""The suite as it is, where it has no variants."""


def in_turn(suite: Suite, data_root: Path | None) -> Suite:
    """The suite with a variant `without DOMAIN` for each domain that is to be left out in turn.

    A suite that asks for nothing of the kind is returned as it is.
    """
    keys = [key for variant in suite.variants for key in variant.set]
    if suite.unseen is None and not any(key.partition(".")[0] == "unseen" for key in keys):
        return suite
    variants = tuple(
        made for variant in suite.variants or (WHOLE,) for made in _settings(suite, variant, data_root)
    )
    if variants == (WHOLE,):
        return suite
    kind = suite.table.kind
    if kind == "domains" and len(variants) > len(suite.variants):
        kind = "variants" if suite.variants else "unseen"
    if suite.table.kind == "unseen" and suite.variants and len(variants) > len(suite.variants):
        raise UserError(
            "the table kind 'unseen' has a column per domain and no place for the suite's own variants; "
            "use the kind 'variants'"
        )
    layout = TableLayout(**{**suite.table.model_dump(), "kind": kind})
    return suite.model_copy(update={"variants": variants, "table": layout})


def _settings(suite: Suite, variant: Variant, data_root: Path | None) -> Iterator[Variant]:
    """The variant itself, or if it leaves out every domain in turn, one for each of them."""
    from bench.data.unseen import check_domain

    setting = suite.changed(variant.set)
    domain = setting.unseen.domain if setting.unseen else None
    if domain is None:
        yield variant
        return
    domains = spec_of_section(setting.dataset, data_root).domain_names()
    check_domain(domains[0] if domain == EACH else domain, domains, setting.dataset["name"])
    if domain != EACH:
        yield variant
        return
    kept = {key: value for key, value in variant.set.items() if key.partition(".")[0] != "unseen"}
    for each in domains:
        name = f"{variant.name} without {each}".strip()
        yield Variant(name=name, set={**kept, "unseen": {"domain": each}})
