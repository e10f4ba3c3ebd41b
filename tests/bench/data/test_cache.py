import hashlib
import json
import multiprocessing
import shutil
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from bench.data import cache
from bench.data.base import DatasetSpec, Split, TrainTest
from bench.errors import UserError


class Counted(DatasetSpec):
    """Writes a line to a log each time a domain is built."""

    log: str
    number: int = 50

    classes: ClassVar[tuple[str, ...]] = ("even", "odd")
    counts: ClassVar[dict[str, tuple[int, int] | None]] = {"b": None, "a": None}

    def fingerprint(self, root: Path | None) -> str:
        return str(root)

    def build(self, root: Path | None, domain: str) -> TrainTest:
        with Path(self.log).open("a") as log:
            log.write(f"{domain}\n")
        y = np.arange(self.number) % 2
        x = np.full((self.number, 3, 4, 4), ord(domain), np.uint8)
        return TrainTest(Split(x, y), Split(x[:10], y[:10]))

    def builds(self) -> list[str]:
        return Path(self.log).read_text().split()


class Failing(Counted):
    def build(self, root: Path | None, domain: str) -> TrainTest:
        if domain == "a":
            raise UserError("the second domain is damaged")
        return super().build(root, domain)


@pytest.fixture
def spec(tmp_path: Path) -> Counted:
    return Counted(log=str(tmp_path / "log"))


def load(spec: Counted, folder: Path, root: Path | None = None) -> cache.Dataset:
    return cache.load("counted", spec, root, folder / "cache")


def test_built_once_and_read_only(spec: Counted, tmp_path: Path) -> None:
    first, again = load(spec, tmp_path), load(spec, tmp_path)
    assert spec.builds() == ["b", "a"]
    assert first.domains == again.domains == ("b", "a")
    assert first.classes == ("even", "odd")
    assert isinstance(again.train["a"].x, np.memmap)
    assert (again.train["a"].x == ord("a")).all() and len(again.test["b"]) == 10
    with pytest.raises(ValueError, match="read-only"):
        again.train["a"].x[0] = 0


def test_checksum_is_over_the_values(spec: Counted, tmp_path: Path) -> None:
    dataset = load(spec, tmp_path)

    def sha(array: np.ndarray) -> str:
        return hashlib.sha256(f"{array.dtype.str}{array.shape}".encode() + array.tobytes()).hexdigest()

    lines = [
        f"{domain}.{part}.{kind}.npy {sha(getattr(getattr(dataset, part)[domain], kind))}\n"
        for domain in ("b", "a")
        for part in ("train", "test")
        for kind in ("x", "y")
    ]
    assert dataset.checksum == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_options_and_sources_have_entries_of_their_own(spec: Counted, tmp_path: Path) -> None:
    load(spec, tmp_path)
    other = load(spec.model_copy(update={"number": 20}), tmp_path)
    assert len(other.train["a"]) == 20
    load(spec, tmp_path, root=tmp_path)
    assert len(spec.builds()) == 6


@pytest.mark.parametrize("damage", ["truncated array", "missing array", "broken manifest", "no manifest"])
def test_damaged_entry_is_built_again(spec: Counted, tmp_path: Path, damage: str) -> None:
    checksum = load(spec, tmp_path).checksum
    (manifest,) = (tmp_path / "cache").rglob("manifest.json")
    array = manifest.parent / "a.train.x.npy"
    if damage == "truncated array":
        array.write_bytes(array.read_bytes()[:-1])
    elif damage == "missing array":
        array.unlink()
    elif damage == "broken manifest":
        manifest.write_text(manifest.read_text()[:100])
    else:
        manifest.unlink()
    assert load(spec, tmp_path).checksum == checksum
    assert spec.builds() == ["b", "a"] * 2


def test_failure_leaves_nothing_and_a_dead_process_does_no_harm(spec: Counted, tmp_path: Path) -> None:
    failing = Failing(log=spec.log)
    with pytest.raises(UserError, match="second domain"):
        load(failing, tmp_path)
    assert [path.name for path in (tmp_path / "cache" / "datasets").iterdir() if path.is_dir()] == []

    load(spec, tmp_path)
    (manifest,) = (tmp_path / "cache").rglob("manifest.json")
    entry = manifest.parent
    entry.rename(entry.with_name(f"{entry.name}.partial"))  # as if killed just before the last step
    (entry.with_name(f"{entry.name}.partial") / "stale").touch()
    load(spec, tmp_path)
    assert not list((tmp_path / "cache").rglob("stale"))


def test_unusable_cache_is_a_sentence(spec: Counted, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="set BENCH_CACHE to another folder"):
        cache.load("counted", spec, None, tmp_path / "file")


def test_read_only_cache_serves_what_it_has(spec: Counted, tmp_path: Path) -> None:
    load(spec, tmp_path)
    shutil.copytree(tmp_path / "cache", tmp_path / "copy")
    for lock in (tmp_path / "copy").rglob("*.lock"):
        lock.unlink()
    cache.load("counted", spec, None, tmp_path / "copy")
    assert not list((tmp_path / "copy").rglob("*.lock"))


def _load_in_process(log: str, folder: str, barrier: Barrier, results: "Queue[tuple[str, int]]") -> None:
    barrier.wait()
    dataset = load(Counted(log=log, number=20000), Path(folder))
    results.put((dataset.checksum, int(dataset.train["a"].x.sum())))


def test_processes_that_start_at_once_build_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(3), context.Queue()
    log = str(tmp_path / "log")
    workers = [
        context.Process(target=_load_in_process, args=(log, str(tmp_path), barrier, results))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    found = {results.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join(timeout=60)
    assert len(found) == 1
    assert found.pop()[1] == 20000 * 48 * ord("a")
    assert Path(log).read_text().split() == ["b", "a"]
    assert [json.loads(file.read_text())["domains"] for file in tmp_path.rglob("manifest.json")] == [
        ["b", "a"]
    ]
