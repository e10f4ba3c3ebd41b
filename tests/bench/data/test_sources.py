import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.data.images import decoded, scaled
from bench.data.sources import fingerprint, open_source
from bench.errors import UserError
from tests.kit.data import picture, real_data, write_folder, write_tar, write_zip

FILES = {"a/one.png": picture(10), "b/two.png": picture(20), "b/c/three.png": picture(30)}
WRITERS: dict[str, Callable[[Path, dict[str, bytes]], Path]] = {
    "set": write_folder,
    "set.zip": write_zip,
    "set.tar": write_tar,
    "set.tar.gz": write_tar,
    "set.tgz": write_tar,
}


@pytest.mark.parametrize("name", WRITERS)
def test_folder_and_archives_read_alike(name: str, tmp_path: Path) -> None:
    source = open_source(WRITERS[name](tmp_path / name, FILES))
    assert source.names == sorted(FILES)
    assert dict(source.contents(list(FILES))) == FILES
    assert source.read("b/two.png") == FILES["b/two.png"]
    pixels = decoded(source, ["b/two.png", "a/one.png"], size=8)
    assert pixels.shape == (2, 3, 8, 8)
    assert pixels[:, 0, 0, 0].tolist() == [20, 10]
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


@pytest.mark.parametrize(
    "name", ["../out.png", "a/../../out.png", "/tmp/out.png", "..\\out.png", "C:\\out.png"]
)
@pytest.mark.parametrize("archive", ["set.zip", "set.tar.gz"])
def test_names_that_leave_the_folder_are_refused(archive: str, name: str, tmp_path: Path) -> None:
    path = WRITERS[archive](tmp_path / archive, FILES | {name: picture(1)})
    with pytest.raises(UserError, match="placed outside its folder"):
        _ = open_source(path).names


def test_links_in_archives_are_not_followed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        link = tarfile.TarInfo("a/link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        info = zipfile.ZipInfo("a/link.png")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    assert open_source(tmp_path / "set.tar").names == []
    assert open_source(tmp_path / "set.zip").names == []


@pytest.mark.parametrize("name", ["set.zip", "set.tar", "set.tar.gz"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_truncated_archives(name: str, share: float, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).bytes(20000)
    path = WRITERS[name](tmp_path / name, FILES | {"z/last.bin": noise})
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(UserError, match=rf"cannot read .*{name}.*get it again"):
        source = open_source(path)
        list(source.contents(source.names))


def test_tar_cut_off_between_two_files(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "set.tar", FILES)
    with tarfile.open(path) as archive:
        last = archive.getmembers()[-1].offset
    path.write_bytes(path.read_bytes()[:last])
    with pytest.raises(UserError, match="its end is missing"):
        _ = open_source(path).names


def test_damaged_content_of_a_zip(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "set.zip", FILES)
    data = bytearray(path.read_bytes())
    data[data.index(FILES["b/two.png"]) + 40] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"b/two.png in .*set.zip: Bad CRC"):
        decoded(open_source(path), ["a/one.png", "b/two.png"], size=8)


@pytest.mark.parametrize("damage", ["truncated", "no picture", "empty"])
def test_damaged_picture_is_named(damage: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "JPEG")
    data = {"truncated": buffer.getvalue()[:1500], "no picture": b"hello" * 99, "empty": b""}[damage]
    source = open_source(write_folder(tmp_path / "set", FILES | {"b/bad.jpg": data}))
    with pytest.raises(UserError, match=r"cannot read b/bad.jpg in .*set.*get it again") as caught:
        decoded(source, [*FILES, "b/bad.jpg"], size=8)
    assert "BytesIO" not in str(caught.value)


def test_truncated_copy_of_the_real_archive(tmp_path: Path) -> None:
    real = real_data("office_caltech10_224.zip") / "office_caltech10_224.zip"
    short = tmp_path / "office_caltech.zip"
    with real.open("rb") as file:
        short.write_bytes(file.read(5_000_000))
    with pytest.raises(UserError, match=r"cannot read .*office_caltech.zip"):
        _ = open_source(short).names


def test_fingerprint_follows_changes(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "set", FILES)
    archive = write_zip(tmp_path / "set.zip", FILES)
    before = fingerprint([folder, archive])
    assert fingerprint([folder, archive]) == before
    (folder / "b" / "c" / "four.png").write_bytes(picture(40))
    after = fingerprint([folder, archive])
    assert after != before
    write_zip(archive, FILES | {"more": b""})
    assert fingerprint([folder, archive]) != after


def test_pictures_of_all_kinds_become_rgb(tmp_path: Path) -> None:
    grey, palette, alpha = io.BytesIO(), io.BytesIO(), io.BytesIO()
    Image.new("L", (20, 10), 77).save(grey, "JPEG")
    Image.new("RGB", (10, 20), (250, 0, 0)).quantize(2).save(palette, "PNG")
    Image.new("RGBA", (10, 10), (1, 2, 3, 128)).save(alpha, "PNG")
    files = {"a.jpg": grey.getvalue(), "b.png": palette.getvalue(), "c.png": alpha.getvalue()}
    pixels = decoded(open_source(write_folder(tmp_path / "set", files)), sorted(files), size=4)
    assert pixels[:, :, 0, 0].tolist() == [[77, 77, 77], [250, 0, 0], [1, 2, 3]]


def test_scaling_averages_what_it_makes_smaller() -> None:
    chess = np.indices((1, 64, 64)).sum(0).astype(np.uint8) % 2 * 200
    small = scaled(chess, 8)
    assert small.shape == (1, 3, 8, 8)
    assert (np.abs(small.astype(int) - 100) <= 1).all()
    same = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), np.uint8)
    assert (scaled(same, 8) == same.transpose(0, 3, 1, 2)).all()
