"""`bench data import`: what it accepts, what it reports, and what it refuses before anything is copied."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.api.observer import QUIET
from bench.data import dataset_spec, load_dataset
from bench.data.manage import fetch, import_data
from bench.data.request import FetchRequest, ImportRequest
from bench.errors import UserError
from tests.kit.cli import call_bench
from tests.kit.data import domain_pictures, picture, real_data, write_folder, write_tar, write_zip


def pacs_pictures(each: int = 8) -> dict[str, bytes]:
    spec = dataset_spec("pacs", {})
    return domain_pictures(spec.counts, spec.classes, each)


def test_an_incomplete_dataset_is_imported_with_its_differences(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "some.zip", pacs_pictures())  # 224 pictures
    imported = import_data(ImportRequest("pacs", path, tmp_path / "root"), QUIET)
    assert sum(row.found or 0 for row in imported.rows) == 224
    assert imported.differences[:2] == ["photo train 39 instead of 1,169", "photo test 17 instead of 501"]
    assert {row.per_class["dog"] for row in imported.rows} == {5, 3}  # of 8 dogs per domain


def test_the_command_says_what_it_found(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "some.zip", pacs_pictures())
    outcome = call_bench("data", "import", "pacs", path, "--data-root", tmp_path / "root")
    assert outcome.code == 0
    assert "1130 fewer than published" in outcome.out
    lines = outcome.out.splitlines()
    assert lines[-2] == f"copied {path} to {tmp_path / 'root' / 'pacs.zip'}: 224 samples in 4 domains"
    assert lines[-1].startswith("sizes differ from the published ones: photo train 39 instead of 1,169; ")


def test_a_complete_dataset_has_no_differences(tmp_path: Path) -> None:
    path = real_data("office_caltech10_224.zip") / "office_caltech10_224.zip"
    imported = import_data(ImportRequest("office_caltech", path, tmp_path, link=True), QUIET)
    assert imported.differences == []
    assert sum(row.found or 0 for row in imported.rows) == 2533


def test_nothing_is_copied_before_the_data_are_known_to_be_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_copies(*_: object) -> None:
        raise AssertionError("copied")

    monkeypatch.setattr(shutil, "copytree", no_copies)
    wrong = write_folder(tmp_path / "wrong", domain_pictures("ab", ["c", "d"], each=3))
    for name in ("pacs", "cifar10", "digits", "tiny_imagenet"):
        with pytest.raises(UserError, match="wrong"):
            import_data(ImportRequest(name, wrong, tmp_path / "root"), QUIET)
    good = write_folder(tmp_path / "good", pacs_pictures(2))
    with pytest.raises(AssertionError, match="copied"):  # the same path leads to a copy if all is well
        import_data(ImportRequest("pacs", good, tmp_path / "root"), QUIET)


CIFAR_CLASSES = dataset_spec("cifar10", {}).class_names(None)


def cifar_pictures(number: bool = False) -> dict[str, bytes]:
    return {
        f"{part}/{label if number else name}/{i}.png": picture(10 * label + i + shift)
        for part, shift in (("train", 0), ("test", 100))
        for label, name in enumerate(CIFAR_CLASSES)
        for i in range(2)
    }


def renamed(files: dict[str, bytes], **names: str) -> dict[str, bytes]:
    return {"/".join(names.get(part, part) for part in file.split("/")): d for file, d in files.items()}


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: write_folder(folder / "download", cifar_pictures()),
        lambda folder: write_folder(folder / "download", cifar_pictures(number=True)),
        lambda folder: write_folder(
            folder / "download", renamed(cifar_pictures(), automobile="Car", airplane="Airplane")
        ),
        lambda folder: write_zip(folder / "cifar10.zip", cifar_pictures()),
        lambda folder: write_zip(
            folder / "CIFAR-10-images-master.zip", {f"x/{n}": d for n, d in cifar_pictures().items()}
        ),
        lambda folder: write_tar(folder / "cifar10_png.tar.gz", cifar_pictures()),
    ],
    ids=["names", "numbers", "other spellings", "zip", "nested zip", "tar"],
)
def test_cifar_as_pictures(write: Callable[[Path], Path], tmp_path: Path) -> None:
    imported = import_data(ImportRequest("cifar10", write(tmp_path), tmp_path / "root"), QUIET)
    assert imported.differences == [
        "cifar10 train 20 instead of 50,000",
        "cifar10 test 20 instead of 10,000",
    ]
    dataset = load_dataset("cifar10", {}, tmp_path / "root", tmp_path / "cache")
    shades = [10 * label + i for label in range(10) for i in range(2)]
    assert dataset.train["cifar10"].x[:, 0, 0, 0].tolist() == shades
    assert dataset.test["cifar10"].x[:, 0, 0, 0].tolist() == [100 + shade for shade in shades]
    assert dataset.train["cifar10"].y.tolist() == np.repeat(np.arange(10), 2).tolist()


def test_cifar100_as_pictures(tmp_path: Path) -> None:
    classes = dataset_spec("cifar100", {}).class_names(None)
    files = domain_pictures(("train", "test"), classes, each=1)
    import_data(
        ImportRequest("cifar100", write_zip(tmp_path / "cifar100.zip", files), tmp_path / "root"), QUIET
    )
    dataset = load_dataset("cifar100", {"size": 8}, tmp_path / "root", tmp_path / "cache")
    assert dataset.train["cifar100"].y.tolist() == list(range(100))
    with pytest.raises(UserError, match=r"cifar100.zip is not named like any file of this dataset"):
        import_data(ImportRequest("cifar10", tmp_path / "cifar100.zip", tmp_path / "other"), QUIET)


def test_cifar_pictures_of_an_unknown_class(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "mine", cifar_pictures() | {"train/shp/1.png": picture(1)})
    with pytest.raises(UserError, match=r"mine/train has an unknown class 'shp'; did you mean 'ship'"):
        import_data(ImportRequest("cifar10", path, tmp_path / "root"), QUIET)


def mnist_m() -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for part, labels, shift in (("train", (3, 1, 4, 1, 5), 0), ("test", (9, 2, 6), 100)):
        names = [f"{number:08}.png" for number in range(len(labels))]
        files |= {f"mnist_m_{part}/{name}": picture(shift + i) for i, name in enumerate(names)}
        lines = "".join(f"{name} {label}\n" for name, label in zip(names, labels, strict=True))
        files[f"mnist_m_{part}_labels.txt"] = lines.encode()
    return files


@pytest.mark.parametrize("form", ["mnist_m", "other", "mnist_m.tar.gz", "mnist_m.zip"])
def test_official_mnist_m(form: str, tmp_path: Path) -> None:
    nested = {f"mnist_m/{name}": data for name, data in mnist_m().items()}
    if form == "mnist_m.tar.gz":
        path = write_tar(tmp_path / form, nested)
    elif form == "mnist_m.zip":
        path = write_zip(tmp_path / form, nested)
    else:
        path = write_folder(tmp_path / form, mnist_m())
    import_data(ImportRequest("digits", path, tmp_path / "root"), QUIET)
    dataset = load_dataset(
        "digits", {"domains": ["mnistm"], "size": 8}, tmp_path / "root", tmp_path / "cache"
    )
    by_shade = dict(zip(dataset.train["mnistm"].x[:, 0, 0, 0], dataset.train["mnistm"].y, strict=True))
    assert [int(by_shade[i]) for i in range(5)] == [3, 1, 4, 1, 5]
    assert sorted(dataset.test["mnistm"].y.tolist()) == [2, 6, 9]


def test_mnist_m_without_a_listed_picture(tmp_path: Path) -> None:
    files = mnist_m()
    del files["mnist_m_test/00000001.png"]
    path = write_folder(tmp_path / "mnist_m", files)
    with pytest.raises(UserError, match=r"mnist_m_test_labels.txt, line 2: '00000001.png 2' is not the name"):
        import_data(ImportRequest("digits", path, tmp_path / "root"), QUIET)


def test_tiny_imagenet_without_names_of_classes(tmp_path: Path) -> None:
    kinds = [f"n{number:08}" for number in range(200)]
    files = {f"train/{kind}/images/{kind}_0.JPEG": picture(1) for kind in kinds}
    files |= {f"val/images/val_{i}.JPEG": picture(1) for i in range(200)}
    files["wnids.txt"] = "\n".join(kinds).encode()
    annotations = [f"val_{i}.JPEG\t{kind}\t0\t0\t9\t9" for i, kind in enumerate(kinds)]
    files["val/val_annotations.txt"] = "\n".join(annotations).encode()
    with pytest.raises(UserError, match=r"tiny lacks words.txt"):
        import_data(
            ImportRequest("tiny_imagenet", write_folder(tmp_path / "tiny", files), tmp_path / "root"), QUIET
        )
    assert not (tmp_path / "root" / "tiny_imagenet").exists()


def test_own_data_stay_where_they_are(tmp_path: Path) -> None:
    for work in (
        lambda: import_data(ImportRequest("folder", tmp_path, tmp_path / "root"), QUIET),
        lambda: fetch(FetchRequest("arrays", tmp_path), QUIET),
    ):
        with pytest.raises(UserError, match="own data stay where they are: give their path in the suite"):
            work()


def test_own_data_can_be_checked_by_path(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "mine", domain_pictures("ab", ["c", "d"], each=10))
    outcome = call_bench("data", "check", folder, BENCH_CACHE=str(tmp_path / "cache"))
    assert outcome.code == 0
    assert outcome.out.count(" 7 7 ") == 2
    outcome = call_bench("data", "check", "pcas")
    assert outcome.code == 2
    assert "unknown dataset 'pcas', and no such file or folder; did you mean 'pacs'?" in outcome.err
