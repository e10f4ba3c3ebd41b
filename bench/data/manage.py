"""What `bench data` does: check a dataset's files, import them, and download those that are public."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.data import dataset_names, dataset_spec, registry
from bench.data.array_files import ArrayFiles
from bench.data.base import Dataset, DatasetSpec, TrainTest
from bench.data.own import OwnData
from bench.data.request import CheckRequest, FetchRequest, ImportRequest
from bench.errors import UserError, nearest

if TYPE_CHECKING:
    from bench.observer import Observer

OK = "ok"


@dataclass(frozen=True)
class CheckRow:
    """One split of one domain: what was found, and what was published."""

    domain: str
    split: str
    expected: int | None
    found: int | None
    status: str
    """`ok`, how it differs, or the error that prevents it from being read."""
    per_class: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Imported:
    """The result of an import: where the files are now, and what they contain."""

    target: Path
    rows: list[CheckRow]

    @property
    def differences(self) -> list[str]:
        """One phrase for each imported split whose size is not the published one."""
        return [
            f"{row.domain} {row.split} {row.found:,} instead of {row.expected:,}"
            for row in self.rows
            if None not in (row.found, row.expected) and row.found != row.expected
        ]


def check(request: CheckRequest, observer: "Observer") -> list[CheckRow]:
    """Decode all files of a dataset and compare its sizes with the published ones.

    A UserError if nothing can be read at all.
    """
    name, options = request.name, {}
    if name not in dataset_names():
        if not Path(name).exists():
            raise UserError(
                f"unknown dataset '{name}', and no such file or folder; {nearest(name, dataset_names())}"
            )
        name, options = "arrays" if name.endswith(".npz") else "folder", {"path": name}
    rows = check_spec(dataset_spec(name, options, request.data_root), request.data_root)
    if all(row.found is None for row in rows):
        raise UserError(rows[0].status)
    return rows


def check_spec(spec: DatasetSpec, root: Path | None) -> list[CheckRow]:
    """The same of a dataset with options; what cannot be read has rows that say why."""
    return [row for domain in spec.published_sizes() for row in _checked(spec, root, domain)]


def _checked(spec: DatasetSpec, root: Path | None, domain: str) -> list[CheckRow]:
    try:
        return _rows(spec, domain, spec.build(root, domain), spec.class_names(root))
    except UserError as error:
        return _missing_rows(spec, domain, str(error))


def _missing_rows(spec: DatasetSpec, domain: str, status: str) -> list[CheckRow]:
    return [CheckRow(domain, part, size, None, status) for part, size in _published(spec, domain).items()]


def deviations(dataset: Dataset, spec: DatasetSpec) -> list[str]:
    """A sentence about the splits whose size is not the published one, such as those of a subset; or none."""
    sizes = []
    for domain in dataset.domains:
        # a user's own data have no published sizes, and a worker may not see their folder
        published = spec.published_sizes()[domain] if domain in spec.counts else None
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
    train, test = spec.published_sizes()[domain] or (None, None)
    return {"train": train, "test": test}


def import_data(request: ImportRequest, observer: "Observer") -> Imported:
    """Copy or link a folder or file to where the dataset looks for it, once all of it has been decoded."""
    name, path, root = request.name, request.path, _root(request)
    if not path.exists():
        raise UserError(f"{path} does not exist; give the path of a folder or file to import")
    spec = _published_spec(name)
    place = spec.place_of(path)
    target = root / place
    if target.exists():
        raise UserError(f"{target} already exists; remove it first if you want to replace it")
    with _staging(root) as staging:
        # The data are checked through a link, so that nothing is copied before they are known to be good.
        staged = staging / "linked" / place
        staged.parent.mkdir(parents=True)
        staged.symlink_to(path.resolve())
        try:
            rows = _all_present(spec, name, path, staging / "linked")
        except UserError as error:
            raise UserError(str(error).replace(str(staged), str(path))) from error
        if not request.link:
            staged = _copied(path, staging / "copied" / place)
        target.parent.mkdir(parents=True, exist_ok=True)
        staged.replace(target)
    return Imported(target, rows)


def _published_spec(name: str) -> DatasetSpec:
    """The dataset with its default options; own data have none, and cannot be imported or fetched."""
    kind = registry.load(name)
    if issubclass(kind, OwnData):
        raise UserError(f"dataset '{name}' has no files to import or fetch: {kind.origin}")
    return dataset_spec(name, {})


def _all_present(spec: DatasetSpec, name: str, path: Path, root: Path) -> list[CheckRow]:
    """A row per split of every domain; a UserError if a present domain is damaged, or if none is present."""
    present = spec.present_domains(root)
    if not present:
        raise UserError(f"{path} holds no complete domain of '{name}'; {spec.origin}")
    classes = spec.class_names(root)
    rows = []
    for domain in spec.published_sizes():
        if domain in present:
            rows += _rows(spec, domain, spec.build(root, domain), classes)
        else:
            rows += _missing_rows(spec, domain, "not in this import")
    return rows


def _copied(path: Path, copy: Path) -> Path:
    copy.parent.mkdir(parents=True)
    if path.is_dir():
        shutil.copytree(path, copy)
    else:
        shutil.copy2(path, copy)
    return copy


def fetch(request: FetchRequest, observer: "Observer") -> list[Path]:
    """Download the files whose addresses torchvision knows, except those that are there and intact."""
    root, spec = _root(request), _published_spec(request.name)
    if not (isinstance(spec, ArrayFiles) and spec.downloads):
        raise UserError(f"dataset '{request.name}' cannot be fetched: {spec.origin}")
    files = []
    for remote in (remote for dataset in spec.downloads for remote in _torchvision_files(dataset)):
        files.append(_download(remote, root / spec.folder))
        observer.say(f"fetched {files[-1]}")
    return files


def _root(request: FetchRequest | ImportRequest) -> Path:
    if request.data_root is None:
        raise UserError("the folder for the data is unknown; give --data-root DIR or set BENCH_DATA_ROOT")
    return request.data_root


class _Remote(NamedTuple):
    urls: list[str]
    path: str
    md5: str


def _torchvision_files(dataset: str) -> list[_Remote]:
    """The addresses and checksums in torchvision; its loaders are not used, because they unpickle."""
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
    raise UserError(f"cannot download {file.urls[-1]}: {reason}; download it by hand to {target}") from reason


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """A temporary folder on the same disk as the final place; it is always removed afterwards."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".incoming-", dir=folder) as name:
            yield Path(name)
    except OSError as error:
        raise UserError(
            f"cannot write below {folder}: {error.strerror or error}; choose another --data-root"
        ) from error
