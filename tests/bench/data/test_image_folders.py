import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.data import dataset_spec, load_dataset
from bench.data.base import Dataset
from bench.data.image_folders import ImageFolders
from bench.errors import UserError
from tests.kit.data import domain_pictures, picture, real_data, write_folder, write_tar, write_zip

SIZES = {
    "office_caltech": {"caltech": 1123, "amazon": 958, "webcam": 295, "dslr": 157},
    "pacs": {"photo": 1670, "art_painting": 2048, "cartoon": 2344, "sketch": 3929},
    "office_home": {"art": 2427, "clipart": 4365, "product": 4439, "real_world": 4357},
}
TEST_SIZES = {
    "office_caltech": [224, 190, 58, 30],
    "pacs": [501, 615, 704, 1179],
    "office_home": [729, 1310, 1332, 1308],
}


@pytest.mark.parametrize("name", SIZES)
def test_splits_have_the_published_sizes(name: str) -> None:
    spec = dataset_spec(name, {})
    assert isinstance(spec, ImageFolders)
    train = [int(spec.in_train(np.arange(size)).sum()) for size in SIZES[name].values()]
    assert [size - n for size, n in zip(SIZES[name].values(), train, strict=True)] == TEST_SIZES[name]
    assert spec.counts == dict(zip(SIZES[name], zip(train, TEST_SIZES[name], strict=True), strict=True))


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    root = real_data("office_caltech10_224.zip")
    return load_dataset("office_caltech", {}, root, tmp_path_factory.mktemp("cache"))


def test_real_office_caltech(office: Dataset) -> None:
    assert {domain: (len(office.train[domain]), len(split)) for domain, split in office.test.items()} == {
        "caltech": (899, 224),
        "amazon": (768, 190),
        "webcam": (237, 58),
        "dslr": (127, 30),
    }
    assert office.train["caltech"].x.shape == (899, 3, 32, 32)
    for split in (*office.train.values(), *office.test.values()):
        assert np.unique(split.y).tolist() == list(range(10))


def test_real_pictures_are_where_the_rule_puts_them(office: Dataset) -> None:
    with zipfile.ZipFile(real_data() / "office_caltech10_224.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.startswith("webcam/"))
        for part, row, position in (("train", 0, 0), ("train", 8, 10), ("test", 0, 8), ("test", 3, 19)):
            with archive.open(names[position]) as file:
                expected = Image.open(file).convert("RGB").resize((32, 32), Image.Resampling.BILINEAR)
            split = getattr(office, part)["webcam"]
            assert (split.x[row].transpose(1, 2, 0) == np.asarray(expected)).all()
            assert office.classes[split.y[row]] == names[position].split("/")[1]


def pacs_pictures(each: int = 5) -> dict[str, bytes]:
    spec = dataset_spec("pacs", {})
    return domain_pictures(spec.counts, spec.classes, each)


def test_a_limited_dataset_has_some_of_the_pictures_of_the_whole(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "pacs", pacs_pictures(each=10)).parent
    whole = load_dataset("pacs", {"size": 8}, root, tmp_path / "cache")
    limited = load_dataset("pacs", {"size": 8, "limit": 14}, root, tmp_path / "cache")
    for part in ("train", "test"):
        for domain, split in getattr(whole, part).items():
            found, expected = getattr(limited, part)[domain], split.thinned(14)
            assert np.bincount(found.y).tolist() == [2] * 7
            assert (found.x == expected.x).all()
            assert (found.y == expected.y).all()
    assert "limit" not in dataset_spec("pacs", {}).model_dump()


def test_real_pacs(tmp_path: Path) -> None:
    dataset = load_dataset("pacs", {"limit": 70}, real_data("pacs_128.zip"), tmp_path)
    assert list(dataset.train) == list(SIZES["pacs"])
    for split in (*dataset.train.values(), *dataset.test.values()):
        assert split.x.shape == (70, 3, 32, 32)
        assert np.unique(split.y).tolist() == list(range(7))


@pytest.mark.parametrize("shape", [(41, 23), (24, 37)])
def test_crop_is_the_middle_as_encoders_cut_it(shape: tuple[int, int], tmp_path: Path) -> None:
    from torchvision.transforms import CenterCrop, Compose, InterpolationMode, Resize

    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8))
    buffer = io.BytesIO()
    noise.save(buffer, "PNG")
    write_folder(tmp_path / "pacs", pacs_pictures() | {"photo/dog/000.png": buffer.getvalue()})
    dataset = load_dataset("pacs", {"size": 16, "fit": "crop"}, tmp_path, tmp_path / "cache")
    expected = Compose([Resize(16, InterpolationMode.BICUBIC), CenterCrop(16)])(noise)
    found = dataset.test["photo"].x[0].transpose(1, 2, 0)  # the first of all pictures is a test picture
    assert (found == np.asarray(expected)).all()
    assert "fit" not in dataset_spec("pacs", {}).model_dump()


@pytest.mark.parametrize("form", ["folder", "zip", "tar.gz", "nested zip"])
def test_layouts_give_the_same_arrays(form: str, tmp_path: Path) -> None:
    files = pacs_pictures()
    checksum = _load(write_folder(tmp_path / "plain" / "pacs", files).parent, tmp_path).checksum
    root = tmp_path / "root"
    root.mkdir()
    if form == "folder":
        upper = {
            name.replace("art_painting", "Art Painting").replace("dog", "Dog"): f for name, f in files.items()
        }
        write_folder(root / "PACS", upper)
    elif form == "zip":
        write_zip(root / "pacs.zip", files | {"__MACOSX/photo/dog/._000.png": b"", "readme.txt": b"hello"})
    elif form == "tar.gz":
        write_tar(root / "pacs.tar.gz", {f"./{name}": data for name, data in files.items()})
    else:
        write_zip(root / "pacs.zip", {f"data/PACS/{name}": data for name, data in files.items()})
    dataset = _load(root, tmp_path)
    assert dataset.checksum == checksum
    # 35 pictures a domain: position i is train where 7(i + 1) div 10 > 7i div 10.
    train = [i for i in range(35) if 7 * (i + 1) // 10 > 7 * i // 10]
    assert dataset.train["sketch"].x[:, 0, 0, 0].tolist() == [i % 5 for i in train]
    assert dataset.train["sketch"].y.tolist() == [i // 5 for i in train]


def _load(root: Path, tmp_path: Path) -> Dataset:
    return load_dataset("pacs", {"size": 8}, root, tmp_path / "cache")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sketch/*": None}, "domain 'sketch' in * lacks pictures"),
        ({"photo/dog/*": None}, "domain 'photo' in * lacks class 'dog'"),
        ({"photo/dogs/1.png": picture(1)}, "unknown class 'dogs'; did you mean 'dog'?"),
        ({"copy/photo/dog/1.png": picture(1)}, "domain 'photo' in * exists more than once"),
        ({"cartoon/horse/000.png": b"nonsense"}, "cannot read cartoon/horse/000.png in *"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, bytes | None], message: str, tmp_path: Path) -> None:
    files = pacs_pictures(2)
    for name, data in change.items():
        if data is None:
            files = {
                each: content for each, content in files.items() if not each.startswith(name.rstrip("*"))
            }
        else:
            files[name] = data
    write_zip(tmp_path / "pacs.zip", files)
    with pytest.raises(UserError) as caught:
        _load(tmp_path, tmp_path)
    assert message.replace("*", str(tmp_path / "pacs.zip")) in str(caught.value)
    assert not list((tmp_path / "cache").rglob("*.npy"))


def test_missing_data_says_what_to_put_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_DATA_ROOT", raising=False)
    with pytest.raises(UserError, match=r"--data-root or BENCH_DATA_ROOT; put the PACS pictures there"):
        load_dataset("pacs", {}, cache=tmp_path)
    monkeypatch.setenv("BENCH_DATA_ROOT", str(tmp_path))
    with pytest.raises(
        UserError, match=f"neither pacs/ nor pacs.zip below {tmp_path}; put the PACS pictures"
    ):
        load_dataset("pacs", {}, cache=tmp_path)
    with pytest.raises(UserError, match="is not a folder"):
        load_dataset("pacs", {}, root=tmp_path / "nowhere", cache=tmp_path)


def tiny_files(flat: bool) -> dict[str, bytes]:
    kinds = [f"n{number:08}" for number in range(200)]
    files = {
        f"tiny-imagenet-200/train/{kind}/images/{kind}_0.JPEG": picture(i) for i, kind in enumerate(kinds)
    }
    # The validation pictures come in the reverse order of the classes.
    val = {kind: f"val_{199 - i}.JPEG" for i, kind in enumerate(kinds)}
    for i, kind in enumerate(kinds):
        folder = "images" if flat else f"{kind}/images"
        files[f"tiny-imagenet-200/val/{folder}/{val[kind]}"] = picture(255 - i)
    files["tiny-imagenet-200/test/images/test_0.JPEG"] = b"not looked at"
    files["tiny-imagenet-200/wnids.txt"] = "\n".join(reversed(kinds)).encode()
    files["tiny-imagenet-200/words.txt"] = b"n00000000\tgoldfish, Carassius auratus\nn00000001\tfox"
    annotations = [f"{val[kind]}\t{kind}\t0\t0\t9\t9" for kind in kinds]
    files["tiny-imagenet-200/val/val_annotations.txt"] = "\n".join(annotations).encode()
    return files


@pytest.mark.parametrize("flat", [True, False])
def test_tiny_imagenet(flat: bool, tmp_path: Path) -> None:
    write_zip(tmp_path / "tiny-imagenet-200.zip", tiny_files(flat))
    dataset = load_dataset("tiny_imagenet", {"size": 8}, tmp_path, tmp_path / "cache")
    assert dataset.classes[:3] == ("goldfish", "fox", "n00000002")
    train, test = dataset.train["tiny_imagenet"], dataset.test["tiny_imagenet"]
    assert train.y.tolist() == test.y.tolist() == list(range(200))
    assert train.x[:, 0, 0, 0].tolist() == list(range(200))
    assert test.x[:, 0, 0, 0].tolist() == [255 - i for i in range(200)]


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("pacs", {"art_painting": "artpainting", "photo": "Photo"}),
        ("pacs", {"art_painting": "art painting", "sketch": "Sketches"}),
        ("office_home", {"real_world": "Real World", "postit_notes": "Post-it Notes", "tv": "TV"}),
        ("office_home", {"real_world": "RealWorld", "art": "Art"}),
        ("office_caltech", {"caltech": "Caltech10", "backpack": "back_pack", "amazon": "amazon/images"}),
    ],
)
def test_other_spellings_of_domains_and_classes(name: str, spellings: dict[str, str], tmp_path: Path) -> None:
    spec = dataset_spec(name, {})
    files = domain_pictures(spec.counts, spec.classes, each=1)
    renamed = {}
    for file, data in files.items():
        parts = [spellings.get(part, part) for part in file.split("/")]
        renamed["/".join(parts)] = data
    usual = write_folder(tmp_path / "usual" / name, files).parent
    other = write_folder(tmp_path / "other" / name, renamed).parent
    checksums = [load_dataset(name, {"size": 8}, root, tmp_path).checksum for root in (usual, other)]
    assert checksums[0] == checksums[1]


def test_tiny_imagenet_errors(tmp_path: Path) -> None:
    files = tiny_files(True)
    for missing, message in {
        "tiny-imagenet-200/wnids.txt": "lacks wnids.txt",
        "tiny-imagenet-200/val/val_annotations.txt": "lacks val_annotations.txt",
    }.items():
        write_zip(tmp_path / "tiny_imagenet.zip", {name: d for name, d in files.items() if name != missing})
        with pytest.raises(UserError, match=message):
            load_dataset("tiny_imagenet", {}, tmp_path, tmp_path / "cache")
