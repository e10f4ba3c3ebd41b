"""A user's own pictures as a dataset: layouts, splits, options and identity."""

from pathlib import Path

import numpy as np
import pytest

from bench.data import DatasetChoice, dataset_spec, from_folder, load_dataset
from bench.data.base import Dataset
from bench.data.datasets.folder import spread
from bench.data.image_folders import seven_tenths
from bench.errors import UserError
from tests.kit.data import domain_pictures, picture, write_folder, write_tar, write_zip

CLASSES = ("cat", "dog")
TWO_DOMAINS = domain_pictures(("photo", "sketch"), CLASSES, each=10)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_DATA_ROOT", raising=False)


def load(path: Path, **options: object) -> Dataset:
    return load_dataset("folder", {"path": str(path), "size": 8, **options})


def shades(dataset: Dataset, domain: str, part: str) -> list[int]:
    return list(getattr(dataset, part)[domain].x[:, 0, 0, 0].tolist())


@pytest.mark.parametrize("form", ["folder", "zip", "tar.gz", "nested zip"])
def test_domains_and_classes_come_from_the_folders(form: str, tmp_path: Path) -> None:
    if form == "folder":
        path = write_folder(tmp_path / "mine", TWO_DOMAINS | {"readme.txt": b"hello"})
    elif form == "tar.gz":
        path = write_tar(tmp_path / "mine.tar.gz", TWO_DOMAINS)
    else:
        prefix = "data/mine/" if form == "nested zip" else ""
        path = write_zip(tmp_path / "mine.zip", {prefix + name: data for name, data in TWO_DOMAINS.items()})
    dataset = load(path)
    assert dataset.domains == ("photo", "sketch")
    assert dataset.classes == CLASSES
    # Of the 20 pictures of a domain in order, those are train that are train in PACS.
    train = [i for i in range(20) if 7 * (i + 1) // 10 > 7 * i // 10]
    assert shades(dataset, "sketch", "train") == [i % 10 for i in train]
    assert dataset.train["sketch"].y.tolist() == [i // 10 for i in train]
    assert dataset.test["photo"].y.tolist() == [i // 10 for i in range(20) if i not in train]


@pytest.mark.parametrize("share", [0.1, 0.25, 0.3, 0.5])
def test_the_test_share_is_spread_evenly(share: float) -> None:
    for number in (1, 7, 20, 1670):
        marks = spread(number, share)
        assert marks.sum() == number - int(round((1 - share) * number, 9))
        gaps = np.diff(np.nonzero(marks)[0])
        assert gaps.max(initial=0) - gaps.min(initial=number) <= 1
    assert (spread(1670, 0.3) == ~seven_tenths(np.arange(1670))).all()


def test_one_domain_is_named_after_its_folder(tmp_path: Path) -> None:
    files = domain_pictures(["pets"], CLASSES, each=4)
    inner = {name.removeprefix("pets/"): data for name, data in files.items()}
    assert load(write_folder(tmp_path / "animals", inner)).domains == ("animals",)
    assert load(write_zip(tmp_path / "animals.zip", inner)).domains == ("animals",)
    assert load(write_zip(tmp_path / "download.zip", files)).domains == ("pets",)


@pytest.mark.parametrize(
    ("train", "test", "domains"),
    [
        ("train/{c}", "test/{c}", ["mine"]),
        ("Train/{c}", "val/{c}", ["mine"]),
        ("train/photo/{c}", "test/photo/{c}", ["photo"]),
        ("photo/train/{c}", "photo/test/{c}", ["photo"]),
        ("mine/a/train/{c}", "mine/a/test/{c}", ["a"]),
    ],
)
def test_folders_of_splits_are_the_split(train: str, test: str, domains: list[str], tmp_path: Path) -> None:
    files = {f"{train.format(c=name)}/{i}.png": picture(i) for name in CLASSES for i in range(3)}
    files |= {f"{test.format(c=name)}/{i}.png": picture(100 + i) for name in CLASSES for i in range(2)}
    if domains == ["a"]:  # beside another domain, which has no split of its own
        files |= {f"mine/b/train/{name}/{i}.png": picture(i) for name in CLASSES for i in range(10)}
        domains = ["a", "b"]
    dataset = load(write_folder(tmp_path / "mine", files))
    assert dataset.domains == tuple(domains)
    assert shades(dataset, domains[0], "train") == [0, 1, 2, 0, 1, 2]
    assert shades(dataset, domains[0], "test") == [100, 101, 100, 101]
    if "b" in domains:
        assert (len(dataset.train["b"]), len(dataset.test["b"])) == (14, 6)


def test_validation_pictures_are_train_beside_a_test_folder(tmp_path: Path) -> None:
    files = {f"{part}/{c}/{part}.png": picture(7) for part in ("train", "val", "test") for c in CLASSES}
    dataset = load(write_folder(tmp_path / "mine", files))
    assert (len(dataset.train["mine"]), len(dataset.test["mine"])) == (4, 2)


def test_numbers_are_sorted_by_value_and_a_domain_may_lack_a_class(tmp_path: Path) -> None:
    files = domain_pictures(["a"], ["0", "2", "10"], each=5) | domain_pictures(["b"], ["2", "10"], each=5)
    dataset = load(write_folder(tmp_path / "mine", files))
    assert dataset.classes == ("0", "2", "10")
    assert set(dataset.train["b"].y.tolist()) == {1, 2}


def test_options(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "mine", TWO_DOMAINS)
    chosen = load(path, domains=["sketch"], test=0.5, limit=4)
    assert chosen.domains == ("sketch",)
    assert (len(chosen.train["sketch"]), len(chosen.test["sketch"])) == (4, 4)
    assert load(path, domains=["sketch", "photo"]).domains == ("sketch", "photo")
    with pytest.raises(UserError, match="no domain 'scetch'; did you mean 'sketch'"):
        load(path, domains=["scetch"])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"readme.txt": b""}, "no pictures; arrange"),
        ({"1.png": picture(1), "2.png": picture(2)}, "is in no folder"),
        ({"a/1.png": picture(1), "b/c/2.png": picture(2)}, "different depths"),
        ({f"{a}/{b}/{c}/1.png": picture(1) for a in "xy" for b in "uv" for c in "cd"}, "too many folders"),
        ({"dog/1.png": picture(1), "dog/2.png": picture(2)}, "one class only, 'dog'"),
        ({"a/dog/1.png": picture(1), "a/cat/1.png": b"no picture"}, r"cat/1.png in .*: not a picture"),
        ({"a/dog/1.png": picture(1), "b/cat/1.png": picture(1)}, "domain 'a' in .* has no train pictures"),
    ],
)
def test_what_is_wrong_is_named(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load(write_folder(tmp_path / "mine", files))
    assert "BytesIO" not in str(caught.value)


def test_paths_are_relative_to_the_current_directory_then_to_the_data_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, root = tmp_path / "here", tmp_path / "root"
    write_folder(root / "mine", TWO_DOMAINS)
    here.mkdir()
    monkeypatch.chdir(here)
    with pytest.raises(UserError, match=r"no 'mine' in the current directory; .*--data-root"):
        dataset_spec("folder", {"path": "mine"})
    assert dataset_spec("folder", {"path": "mine"}, root).domain_names() == ("photo", "sketch")
    monkeypatch.setenv("BENCH_DATA_ROOT", str(root))
    assert dataset_spec("folder", {"path": "mine"}).domain_names() == ("photo", "sketch")
    write_folder(here / "mine", domain_pictures(("nearer", "other"), CLASSES, each=2))
    assert dataset_spec("folder", {"path": "mine"}).domain_names() == ("nearer", "other")


def test_the_digest_follows_the_content_and_nothing_else(tmp_path: Path) -> None:
    def digest(path: Path) -> str:
        return str(dataset_spec("folder", {"path": str(path)}).model_dump()["digest"])

    path = write_folder(tmp_path / "mine", TWO_DOMAINS)
    before = digest(path)
    assert digest(path) == before == digest(write_folder(tmp_path / "copy", TWO_DOMAINS))
    assert digest(write_zip(tmp_path / "mine.zip", TWO_DOMAINS)) == before
    (path / "readme.txt").write_text("not a picture")
    assert digest(path) == before
    (path / "photo" / "dog" / "000.png").write_bytes(picture(200))  # a picture changed in place
    assert digest(path) != before


def test_planned_data_are_found_in_the_cache_without_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "mine", TWO_DOMAINS)
    monkeypatch.chdir(tmp_path)
    planned = dataset_spec("folder", {"path": "mine"}).model_dump(mode="json")
    checksum = load_dataset("folder", planned).checksum
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load_dataset("folder", planned).checksum == checksum


def test_data_that_changed_after_planning_are_refused(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "mine", TWO_DOMAINS)
    planned = dataset_spec("folder", {"path": str(path)}).model_dump(mode="json")
    (path / "photo" / "dog" / "000.png").write_bytes(picture(200))
    with pytest.raises(UserError, match=f"not {planned['digest']}: they changed after the run was planned"):
        load_dataset("folder", planned)


def test_from_folder_is_a_section_of_a_suite(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "mine", TWO_DOMAINS)
    choice = from_folder(path, size=16, domains=["photo"])
    assert choice == DatasetChoice("folder", {"path": str(path), "size": 16, "domains": ["photo"]})
    config = choice.as_config()
    assert config == {"name": "folder", "path": str(path), "size": 16, "domains": ["photo"]}
    assert load_dataset(config.pop("name"), config).train["photo"].x.shape[1:] == (3, 16, 16)
    with pytest.raises(UserError, match="no domain 'photos'"):
        from_folder(path, domains=["photos"])
