import functools
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.api.observer import QUIET
from bench.data import dataset_spec, load_dataset
from bench.data.manage import CheckRow, check, deviations, fetch, import_data
from bench.data.request import CheckRequest, FetchRequest, ImportRequest
from bench.errors import UserError
from tests.kit.data import domain_pictures, picture, real_data, write_folder, write_zip


def pacs_pictures(each: int = 2) -> dict[str, bytes]:
    spec = dataset_spec("pacs", {})
    return domain_pictures(spec.counts, spec.classes, each)


def contents(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_check_real_office_caltech() -> None:
    rows = check(CheckRequest("office_caltech", real_data("office_caltech10_224.zip")), QUIET)
    assert [(row.domain, row.split, row.expected, row.found) for row in rows[:3]] == [
        ("caltech", "train", 899, 899),
        ("caltech", "test", 224, 224),
        ("amazon", "train", 768, 768),
    ]
    assert {row.status for row in rows} == {"ok"}
    webcam = {row.split: row.per_class for row in rows if row.domain == "webcam"}
    assert webcam["train"]["monitor"] + webcam["test"]["monitor"] == 43


def test_check_tells_what_differs_and_what_is_missing(tmp_path: Path) -> None:
    zeros = np.zeros((3, 8, 8), np.uint8)
    labels = np.array([0, 1, 1])
    np.savez(tmp_path / "usps_x.npz", x_train=zeros, y_train=labels, x_test=zeros, y_test=labels)
    rows = {(row.domain, row.split): row for row in check(CheckRequest("digits", tmp_path), QUIET)}
    assert rows["usps", "train"].status == "7288 fewer than published"
    assert rows["usps", "test"].per_class["1"] == 2
    missing = rows["svhn", "test"]
    assert (missing.expected, missing.found) == (26032, None)
    assert "domain 'svhn' is not below" in missing.status
    assert rows["syn", "train"] == CheckRow("syn", "train", None, None, rows["syn", "train"].status)


def test_deviations_of_a_subset(tmp_path: Path) -> None:
    root = real_data("usps_full.npz", "mnistm_subset_6000_2000.npz")
    options = {"domains": ["usps", "mnistm"], "size": 16}
    dataset = load_dataset("digits", options, root, tmp_path)
    assert deviations(dataset, dataset_spec("digits", options)) == [
        "digits has other sizes (train/test) than published: mnistm 6000/2000 instead of 59001/9001"
    ]


@pytest.mark.parametrize("link", [True, False])
@pytest.mark.parametrize("archived", [True, False])
def test_import_pictures(archived: bool, link: bool, tmp_path: Path) -> None:
    if archived:
        path = write_zip(tmp_path / "download (1).zip", pacs_pictures())
    else:
        path = write_folder(tmp_path / "download", pacs_pictures())
    root = tmp_path / "root"
    imported = import_data(ImportRequest("pacs", path, root, link=link), QUIET)
    target = imported.target
    assert target == root / ("pacs.zip" if archived else "pacs")
    assert target.is_symlink() == link
    assert [each.name for each in root.iterdir()] == [target.name]
    assert len(load_dataset("pacs", {}, root, tmp_path / "cache").train["photo"]) == 9
    with pytest.raises(UserError, match="already exists"):
        import_data(ImportRequest("pacs", path, root), QUIET)


def test_import_of_damaged_data_leaves_nothing(tmp_path: Path) -> None:
    files = pacs_pictures() | {"sketch/person/000.png": picture(1)[:50]}
    path = write_zip(tmp_path / "mine.zip", files)
    with pytest.raises(UserError, match=rf"sketch/person/000.png in {path}: "):
        import_data(ImportRequest("pacs", path, tmp_path / "root"), QUIET)
    assert contents(tmp_path / "root") == []
    with pytest.raises(UserError, match="does not exist"):
        import_data(ImportRequest("pacs", tmp_path / "nothing", tmp_path / "root"), QUIET)
    with pytest.raises(UserError, match="neither a folder nor an archive"):
        import_data(ImportRequest("pacs", Path(__file__), tmp_path / "root"), QUIET)


def test_import_of_array_files(tmp_path: Path) -> None:
    data = real_data("usps_full.npz", "syn_roy_sample60.zip")
    root = tmp_path / "root"
    assert (
        import_data(ImportRequest("digits", data / "usps_full.npz", root), QUIET).target
        == root / "digits" / "usps_full.npz"
    )
    import_data(ImportRequest("digits", data / "syn_roy_sample60.zip", root), QUIET)
    assert contents(root) == ["digits/syn_roy_sample60.zip", "digits/usps_full.npz"]
    assert load_dataset("digits", {"domains": ["usps", "syn"]}, root, tmp_path / "cache").domains == (
        "usps",
        "syn",
    )
    with pytest.raises(UserError, match="not named like any file"):
        import_data(ImportRequest("digits", Path(__file__), root), QUIET)
    (tmp_path / "usps.bz2").touch()
    with pytest.raises(UserError, match=r"usps.bz2 holds no complete domain"):
        import_data(ImportRequest("digits", tmp_path / "usps.bz2", root), QUIET)
    with pytest.raises(UserError, match="built in"):
        import_data(ImportRequest("digits_mini", tmp_path / "usps.bz2", root), QUIET)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A web server for the folder `web`."""
    (tmp_path / "web").mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_fetch(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision import datasets

    content = b"as good as an archive"
    served = tmp_path / "web" / "cifar-10-python.tar.gz"
    served.write_bytes(content)
    monkeypatch.setattr(datasets.CIFAR10, "url", f"{server}/{served.name}")
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", hashlib.md5(content).hexdigest())
    root = tmp_path / "root"
    target = root / "cifar10" / "cifar-10-python.tar.gz"
    assert fetch(FetchRequest("cifar10", root), QUIET) == [target]
    assert target.read_bytes() == content
    served.unlink()
    assert fetch(FetchRequest("cifar10", root), QUIET) == [target]  # there and right: not asked for again
    target.unlink()
    with pytest.raises(UserError, match=r"cannot download http.*404.* download it by hand to"):
        fetch(FetchRequest("cifar10", root), QUIET)
    served.write_bytes(b"something else")
    with pytest.raises(UserError, match="cannot download"):
        fetch(FetchRequest("cifar10", root), QUIET)
    assert contents(root) == []


def test_fetch_knows_the_digits(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchvision import datasets

    def serve(name: str) -> tuple[str, str, str]:
        (tmp_path / "web" / name).write_bytes(name.encode())
        return f"{server}/{name}", name, hashlib.md5(name.encode()).hexdigest()

    resources = [serve(name)[1:] for name, _ in datasets.MNIST.resources]
    monkeypatch.setattr(datasets.MNIST, "mirrors", [f"{server}/gone/", f"{server}/"])
    monkeypatch.setattr(datasets.MNIST, "resources", resources)
    for known in (datasets.USPS, datasets.SVHN):
        splits = {part: serve(about[1]) for part, about in known.split_list.items()}
        monkeypatch.setattr(known, "split_list", splits)
    fetch(FetchRequest("digits", tmp_path / "root"), QUIET)
    assert contents(tmp_path / "root" / "digits") == [
        "MNIST/raw/t10k-images-idx3-ubyte.gz",
        "MNIST/raw/t10k-labels-idx1-ubyte.gz",
        "MNIST/raw/train-images-idx3-ubyte.gz",
        "MNIST/raw/train-labels-idx1-ubyte.gz",
        "test_32x32.mat",
        "train_32x32.mat",
        "usps.bz2",
        "usps.t.bz2",
    ]
    with pytest.raises(UserError, match="'pacs' cannot be fetched: put the PACS pictures"):
        fetch(FetchRequest("pacs", tmp_path), QUIET)
