"""From a configuration to a problem: what is refused, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.engine.assembly import assemble
from bench.errors import UserError
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from tests.kit.cli import write_suite


def test_an_impossible_partition_is_refused_before_anything_is_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    suite = write_suite(
        tmp_path,
        dataset={"name": "digits_mini", "limit": 12},
        partition={"name": "by_domain", "clients": 4, "samples": 13},
        encoder="efficientnet_lite0",
        model={"name": "head"},
    )
    config = plan_cells(load_suite(str(suite)))[0].config
    with pytest.raises(UserError, match="1 clients of domain 'mnist' need 13 of its 12 train samples"):
        assemble(config)
    assert not (tmp_path / "cache" / "embeddings").exists()
