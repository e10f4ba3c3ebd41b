"""What `bench data` does: check the user's files, put them in their place, fetch what can be fetched."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.data import dataset_spec
from bench.data.array_files import ArrayFiles
from bench.data.base import Dataset, DatasetSpec, TrainTest
from bench.errors import UserError

OK = "ok"


@dataclass(frozen=True)
class CheckRow:
    """One split of one domain as it is found, beside what was published."""

    domain: str
    split: str
    expected: int | None
    found: int | None
    status: str
    """`ok`, how it differs, or the error that keeps it from being read."""
    per_class: dict[str, int] = field(default_factory=dict)


def check(name: str, root: Path | None) -> list[CheckRow]:
    """Decode everything that a dataset has below the root and compare its sizes with the published ones."""
    spec = dataset_spec(name, {})
    rows = []
    for domain in spec.counts:
        try:
            rows += _rows(spec, domain, spec.build(root, domain), spec.class_names(root))
        except UserError as error:
            rows += [
                CheckRow(domain, part, size, None, str(error))
                for part, size in _published(spec, domain).items()
            ]
    return rows


def deviations(dataset: Dataset, spec: DatasetSpec) -> list[str]:
    """A sentence about the splits whose size is not the published one, such as those of a subset; or none."""
    sizes = []
    for domain in dataset.domains:
        published = spec.counts[domain]
        found = len(dataset.train[domain]), len(dataset.test[domain])
        if published and found != published:
            sizes.append("{} {}/{} instead of {}/{}".format(domain, *found, *published))
    return (
        [f"{dataset.name} has other sizes (train/test) than published: {', '.join(sizes)}"] if sizes else []
    )


def _rows(spec: DatasetSpec, domain: str, splits: TrainTest, classes: tuple[str, ...]) -> list[CheckRow]:
    rows = []
    for (part, expected), split in zip(_published(spec, domain).items(), splits, strict=True):
        difference = 0 if expected is None else len(split) - expected
        comparison = f"{abs(difference)} {'fewer' if difference < 0 else 'more'} than published"
        numbers = np.bincount(split.y, minlength=len(classes)).tolist()
        rows.append(
            CheckRow(
                domain,
                part,
                expected,
                len(split),
                comparison if difference else OK,
                dict(zip(classes, numbers, strict=True)),
            )
        )
    return rows


def _published(spec: DatasetSpec, domain: str) -> dict[str, int | None]:
    train, test = spec.counts[domain] or (None, None)
    return {"train": train, "test": test}


def import_data(name: str, path: Path, root: Path, link: bool = False) -> Path:
    """Copy or link a folder or file to where the dataset looks for it, if all of it can be decoded."""
    if not path.exists():
        raise UserError(f"{path} does not exist; name the folder or file to import")
    spec = dataset_spec(name, {})
    place = spec.place_of(path)
    target = root / place
    if target.exists():
        raise UserError(f"{target} is there already; remove it first, or leave it")
    with _staging(root) as staging:
        staged = staging / place
        staged.parent.mkdir(parents=True, exist_ok=True)
        if link:
            staged.symlink_to(path.resolve())
        elif path.is_dir():
            shutil.copytree(path, staged)
        else:
            shutil.copy2(path, staged)
        domains = spec.present_domains(staging)
        if not domains:
            raise UserError(f"{path} holds no whole domain of '{name}'; {spec.origin}")
        try:
            for domain in domains:
                spec.build(staging, domain)
        except UserError as error:
            raise UserError(str(error).replace(str(staged), str(path))) from error
        target.parent.mkdir(parents=True, exist_ok=True)
        staged.replace(target)
    return target


def fetch(name: str, root: Path) -> list[Path]:
    """Download what torchvision knows where to find; files that are there and right are left alone."""
    spec = dataset_spec(name, {})
    if not (isinstance(spec, ArrayFiles) and spec.downloads):
        raise UserError(f"dataset '{name}' cannot be fetched: {spec.origin}")
    return [
        _download(file, root / spec.folder)
        for dataset in spec.downloads
        for file in _torchvision_files(dataset)
    ]


class _Remote(NamedTuple):
    urls: list[str]
    path: str
    md5: str


def _torchvision_files(dataset: str) -> list[_Remote]:
    """The addresses and checksums that torchvision keeps; its loaders are not used, as they unpickle."""
    from torchvision import datasets

    known = getattr(datasets, dataset)
    if dataset == "MNIST":
        return [
            _Remote([mirror + file for mirror in known.mirrors], f"MNIST/raw/{file}", md5)
            for file, md5 in known.resources
        ]
    if dataset in ("USPS", "SVHN"):
        return [
            _Remote([url], file, md5) for url, file, md5 in (known.split_list[s] for s in ("train", "test"))
        ]
    return [_Remote([known.url], known.filename, known.tgz_md5)]


def _download(file: _Remote, folder: Path) -> Path:
    from torchvision.datasets.utils import check_integrity, download_url

    target = folder / file.path
    if check_integrity(target, file.md5):
        return target
    with _staging(folder) as staging:
        reason: Exception | None = None
        for url in file.urls:
            try:
                download_url(url, staging, target.name, file.md5)
            except (OSError, RuntimeError) as error:
                reason = error
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            (staging / target.name).replace(target)
            return target
    raise UserError(
        f"cannot download {file.urls[-1]}: {reason}; get it by hand and put it at {target}"
    ) from reason


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """A temporary folder on the same disk as the final place, gone afterwards whatever happens."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".incoming-", dir=folder) as name:
            yield Path(name)
    except OSError as error:
        raise UserError(
            f"cannot write below {folder}: {error.strerror or error}; choose another --data-root"
        ) from error
