"""Archives, arrays, pictures and weights made to fill the memory, to run code or to go round in circles."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from bench.data.datasets.arrays import Arrays
from bench.data.formats import read_idx, read_npz
from bench.data.images import decoded
from bench.data.sources import open_source
from bench.errors import UserError
from bench.models.vit import load_weights
from bench.records.predictions import read_predictions
from tests.kit.data import picture, write_folder, write_zip

ZEROS = 150 * 2**20
BOMB = "unpacks to more than 200 times its size"


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


def zip_of_zeros(path: Path, name: str = "a/x.png") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as member:
        for _ in range(ZEROS // 2**20):
            member.write(bytes(2**20))
    return path


def test_archives_that_unpack_to_far_more_than_they_are(tmp_path: Path) -> None:
    packed = tmp_path / "set.tar.gz"
    with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
        member = tarfile.TarInfo("a/x.png")
        member.size = ZEROS
        archive.addfile(member, io.BytesIO(bytes(ZEROS)))
    for path in (packed, zip_of_zeros(tmp_path / "set.zip")):
        with pytest.raises(UserError, match=BOMB):
            _ = open_source(path).names


def test_array_files_that_unpack_to_far_more_than_they_are(tmp_path: Path) -> None:
    path = zip_of_zeros(tmp_path / "set.npz", "x_train.npy")
    with pytest.raises(UserError, match=BOMB):
        read_npz([path])
    with pytest.raises(UserError, match=BOMB):
        Arrays(path=str(path)).class_names()
    with pytest.raises(UserError, match=BOMB):
        read_predictions(path)
    idx = tmp_path / "images.gz"
    idx.write_bytes(gzip.compress(bytes(ZEROS), compresslevel=1))
    with pytest.raises(UserError, match=BOMB):
        read_idx([idx] * 4)


def test_arrays_that_claim_to_be_larger_than_any_memory(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2**45, 8)}
    )
    path = write_zip(tmp_path / "set.npz", {"classes.npy": header.getvalue()})
    with pytest.raises(UserError, match=r"does not fit into memory|cannot read"):
        Arrays(path=str(path)).class_names()


def test_pictures_that_claim_to_be_huge(tmp_path: Path) -> None:
    data = io.BytesIO()
    Image.new("1", (9000, 9000)).save(data, "PNG")
    source = open_source(write_zip(tmp_path / "set.zip", {"a/x.png": data.getvalue()}))
    with pytest.raises(UserError, match="9000 × 9000 pixels is too large"):
        decoded(source, ["a/x.png"], size=8)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    evil, touched = Evil(tmp_path / "touched"), tmp_path / "touched"
    np.savez(tmp_path / "set.npz", x_train=np.array([evil], object), classes=np.array([evil], object))
    torch.save({"weight": evil}, tmp_path / "weights.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(evil, protocol=2))
    for act in (
        lambda: read_npz([tmp_path / "set.npz"]),
        lambda: Arrays(path=str(tmp_path / "set.npz")).class_names(),
        lambda: load_weights(tmp_path / "weights.pt"),
        lambda: load_weights(tmp_path / "plain.pt"),
    ):
        with pytest.raises((UserError, ValueError)):
            act()
    assert not touched.exists()


def test_weights_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"\xff" * 64)
    torch.save([1, 2], tmp_path / "list.pt")
    for name in ("x.safetensors", "list.pt"):
        with pytest.raises(UserError, match=f"cannot read .*{name}"):
            load_weights(tmp_path / name)


def test_links_that_go_round_in_circles(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "set", {"a/one.png": picture(10), "b/two.png": picture(20)})
    for name in ("x", "y", "z"):
        (folder / "a" / name).symlink_to(folder)
    (folder / "a" / "other").symlink_to(folder / "b")
    (folder / "b" / "back").symlink_to(folder / "a")
    names = open_source(folder).names
    assert {"a/one.png", "b/two.png", "a/other/two.png", "b/back/one.png"} <= set(names) and len(names) < 10


def test_domains_whose_names_cannot_be_files(tmp_path: Path) -> None:
    for name in ("x" * 300, "a\x1bb", "a\0b"):
        arrays = {f"{key}_{part}": np.zeros((2, 2)) for key in "x" for part in ("train", "test")}
        labels = {f"y_{part}": np.array([0, 1]) for part in ("train", "test")}
        domains = {f"domain_{part}": np.array([name + "!", "b"]) for part in ("train", "test")}
        np.savez(tmp_path / "set.npz", allow_pickle=False, **arrays, **labels, **domains)
        with pytest.raises(UserError, match="cannot name a domain"):
            Arrays(path=str(tmp_path / "set.npz")).domain_names()
