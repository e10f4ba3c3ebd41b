"""Embeddings of a dataset: once, whole, and the same whatever happens on the way."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.data.base import Split, normalised
from bench.encoders import EncoderSpec, encoder_spec
from bench.encoders.embedding import embed
from bench.encoders.extraction import BATCH
from bench.encoders.loading import load_encoder
from bench.encoders.progress import lines_in_a_log
from bench.errors import UserError
from tests.kit.data import NOISE_SIZES, noise
from tests.kit.places import REPOSITORY

TOTAL = sum(map(sum, NOISE_SIZES.values()))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> EncoderSpec:
    import timm

    torch.manual_seed(0)
    file = tmp_path_factory.mktemp("weights") / "tiny.pt"
    torch.save(timm.create_model("test_vit").state_dict(), file)
    return encoder_spec(f"timm:test_vit@{file}")


PROGRAM = """
import sys, time
from pathlib import Path
from tests.kit.data import noise
from bench.encoders import encoder_spec
from bench.encoders import extraction
from bench.encoders.embedding import embed

name, cache, gate = sys.argv[1:]
extraction.SECONDS_TO_LOSE = 0

def report(done, total):
    print(done, flush=True)
    while gate and done and not Path(gate).exists():
        time.sleep(0.01)
    time.sleep(0.02)

print("sum", embed(noise(), encoder_spec(name), Path(cache), "cpu", report).checksum)
print("modules", *sys.modules)
"""


def start(encoder: EncoderSpec, cache: Path, gate: Path | str = "") -> subprocess.Popen[str]:
    """Another process that computes the embeddings, and after the first batch waits for a file `gate`."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, encoder.name, str(cache), str(gate)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def files_of(cache: Path) -> dict[str, bytes]:
    (entry,) = (path.parent for path in cache.rglob("manifest.json"))
    return {file.name: file.read_bytes() for file in sorted(entry.iterdir())}


def test_embeddings_take_the_place_of_the_pictures(encoder: EncoderSpec, tmp_path: Path) -> None:
    dataset, reports = noise(), []
    found = embed(dataset, encoder, tmp_path, "cpu", lambda done, total: reports.append((done, total)))
    assert reports[0] == (0, TOTAL) and reports[-1] == (TOTAL, TOTAL)
    assert max(b - a for (a, _), (b, _) in pairwise(reports)) <= BATCH["cpu"]
    assert (found.name, found.classes, found.domains) == (dataset.name, dataset.classes, dataset.domains)
    model = load_encoder(encoder, "cpu")
    for parts, originals in ((found.train, dataset.train), (found.test, dataset.test)):
        for domain, part in parts.items():
            assert isinstance(part.x, np.memmap) and not part.x.flags.writeable
            assert part.x.dtype == np.float32
            np.testing.assert_array_equal(part.y, originals[domain].y)
            np.testing.assert_allclose(part.x, model(originals[domain].x), rtol=1e-4, atol=1e-5)


def test_a_second_process_reads_without_the_libraries(encoder: EncoderSpec, tmp_path: Path) -> None:
    checksum = embed(noise(), encoder, tmp_path).checksum
    lines = start(encoder, tmp_path).communicate(timeout=300)[0].splitlines()
    assert lines[0] == f"sum {checksum}"
    assert {"timm", "open_clip", "torchvision"}.isdisjoint(lines[1].split())


def test_checksum_follows_data_and_weights(encoder: EncoderSpec, tmp_path: Path) -> None:
    sums = {embed(noise(seed), encoder, tmp_path).checksum for seed in (0, 1)}
    sums.add("sum0")
    state = torch.load(encoder.file, weights_only=True)  # type: ignore[arg-type]
    state["cls_token"] += 1
    torch.save(state, tmp_path / "other.pt")
    other = encoder_spec(f"timm:test_vit@{tmp_path}/other.pt")
    sums.add(embed(noise(), other, tmp_path).checksum)
    assert len(sums) == 4
    copied = tmp_path / "copied.pt"
    copied.write_bytes(encoder.file.read_bytes())  # type: ignore[union-attr]
    assert embed(noise(), encoder_spec(f"timm:test_vit@{copied}"), tmp_path).checksum in sums


def test_killed_half_way_it_continues_from_what_was_saved_and_no_byte_differs(
    encoder: EncoderSpec, tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    embed(noise(), encoder, whole)
    victim = start(encoder, broken)
    assert victim.stdout
    seen = [0]
    while seen[-1] < TOTAL // 2:
        seen.append(int(victim.stdout.readline()))
    victim.send_signal(signal.SIGKILL)
    seen += [int(line) for line in victim.stdout.read().split()]
    assert victim.wait() == -signal.SIGKILL
    assert seen[-1] < TOTAL
    assert not list(broken.rglob("manifest.json"))

    reports: list[int] = []
    embed(noise(), encoder, broken, "cpu", lambda done, total: reports.append(done))
    assert reports[0] - seen[-1] in range(BATCH["cpu"] + 1)  # saved before it is reported
    assert reports[-1] == TOTAL
    assert files_of(broken) == files_of(whole)
    assert not list(broken.rglob("*.partial"))


def test_processes_that_start_at_once_compute_once(encoder: EncoderSpec, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = start(encoder, tmp_path / "cache", gate)
    assert first.stdout
    while first.stdout.readline().strip() != str(BATCH["cpu"]):
        assert first.poll() is None
    second = start(encoder, tmp_path / "cache")
    assert second.stderr
    assert "waiting for another process" in second.stderr.readline()
    gate.touch()
    first_lines, second_lines = (each.communicate(timeout=300)[0].splitlines() for each in (first, second))
    assert str(TOTAL) in first_lines
    assert second_lines[0] == first_lines[-2]
    assert second_lines[0].startswith("sum ")


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


@pytest.mark.parametrize("damage", [truncate, Path.unlink])
@pytest.mark.parametrize("name", ["manifest.json", "right.train.npy"])
def test_a_damaged_entry_is_made_again(
    encoder: EncoderSpec, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    embed(noise(), encoder, tmp_path)
    before = files_of(tmp_path)
    damage(next(tmp_path.rglob(name)))
    embed(noise(), encoder, tmp_path)
    assert files_of(tmp_path) == before


def test_work_begun_in_another_way_is_not_continued(encoder: EncoderSpec, tmp_path: Path) -> None:
    embed(noise(), encoder, tmp_path)
    before = files_of(tmp_path)
    (manifest,) = tmp_path.rglob("manifest.json")
    entry = manifest.parent
    manifest.unlink()
    partial = entry.rename(entry.with_name(f"{entry.name}.partial"))
    state = json.loads((partial / "progress.json").read_text())
    (partial / "progress.json").write_text(json.dumps({**state, "precision": "torch.bfloat16", "done": 16}))
    reports: list[int] = []
    embed(noise(), encoder, tmp_path, "cpu", lambda done, total: reports.append(done))
    assert reports[0] == 0
    assert files_of(tmp_path) == before


def test_mistakes_are_sentences(encoder: EncoderSpec, tmp_path: Path) -> None:
    vectors = Split(np.zeros((4, 2), np.float32), np.zeros(4, np.int64))
    with pytest.raises(UserError, match="needs pictures"):
        embed(replace(noise(), train={"left": vectors}), encoder, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="set BENCH_CACHE to another folder"):
        embed(noise(), encoder, tmp_path / "file")


def test_half_the_space_has_the_same_numbers_to_three_digits_and_another_identity(
    encoder: EncoderSpec, tmp_path: Path
) -> None:
    whole, half = (embed(noise(), encoder, tmp_path, stored=kind) for kind in ("float32", "float16"))
    assert whole.checksum != half.checksum
    for domain, split in half.train.items():
        assert split.x.dtype == np.float16
        np.testing.assert_allclose(split.x, whole.train[domain].x, rtol=1e-3, atol=1e-3)
    lengths = np.linalg.norm(normalised(half).train["left"].x, axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)


def test_bytes_do_not_depend_on_the_number_of_cores(encoder: EncoderSpec, tmp_path: Path) -> None:
    embed(noise(), encoder, tmp_path / "one")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        embed(noise(), encoder, tmp_path / "three")
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "three")


def test_a_plain_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 0.0, 10.0, 20.0, 21.0, 40.0])
    report = lines_in_a_log("noise by pixels", lambda: next(times))
    for done in (100, 150, 300, 400, 500):
        report(done, 500)
    assert capsys.readouterr().err.splitlines() == [
        "embeddings of noise by pixels: 300 of 500, 10.0 per second, 20 s left",
        "embeddings of noise by pixels: 500 of 500, 10.0 per second",
    ]
