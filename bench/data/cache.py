"""A cache of decoded datasets on disk, which all processes share through memory maps."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from bench.data.base import Dataset, DatasetSpec, Split
from bench.errors import UserError
from bench.records.checksums import is_broken, with_checksum

MANIFEST = "manifest.json"
LAYOUT = 1

_thoroughly = False
_known: set[Path] = set()
"""Entries whose checksums this process has compared."""


@contextmanager
def checked_thoroughly() -> Iterator[None]:
    """Inside, an entry counts only if its arrays have their checksums, which takes a second per gigabyte.

    The driver does so before a run; its workers, who come after it, look at sizes alone.
    """
    global _thoroughly
    before, _thoroughly = _thoroughly, True
    try:
        yield
    finally:
        _thoroughly = before


def cache_root() -> Path:
    """$BENCH_CACHE, or a folder in the user's cache."""
    value = os.environ.get("BENCH_CACHE")
    return Path(value).expanduser() if value else Path.home() / ".cache" / "fl-bench"


def load(name: str, spec: DatasetSpec, root: Path | None, cache: Path) -> Dataset:
    """The dataset from its cache entry; the first process creates the entry while others wait."""
    identity = {
        "layout": LAYOUT,
        "name": name,
        "version": spec.version,
        "options": spec.model_dump(mode="json"),
        "source": spec.fingerprint(root),
    }
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    entry = cache / "datasets" / f"{name}-{key}"
    manifest = intact_manifest(entry)
    if manifest is None:
        try:
            entry.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(entry.with_name(f"{entry.name}.lock")):
                manifest = intact_manifest(entry) or _make(entry, spec, root, identity)
        except OSError as error:
            raise UserError(
                f"cannot write dataset '{name}' to the cache {cache}: {error.strerror or error}; "
                "make room there or set BENCH_CACHE to another folder"
            ) from error
    return _open(entry, manifest)


def array_checksum(array: np.ndarray) -> str:
    """sha256 over type, shape and values; independent of how a file stores them."""
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _make(entry: Path, spec: DatasetSpec, root: Path | None, identity: dict[str, Any]) -> dict[str, Any]:
    """Build under a temporary name and move into place. The caller holds the entry's lock."""
    partial = entry.with_name(f"{entry.name}.partial")
    for leftover in (partial, entry):  # of a killed process, or damaged
        shutil.rmtree(leftover, ignore_errors=True)
    partial.mkdir()
    try:
        arrays = {}
        for domain in spec.domain_names():  # one at a time, to save memory
            for part, split in zip(("train", "test"), spec.build(root, domain), strict=True):
                for kind, array in (("x", split.x), ("y", split.y)):
                    file = f"{domain}.{part}.{kind}.npy"
                    arrays[file] = _save(partial / file, array)
        sums = "".join(f"{file} {about['sha256']}\n" for file, about in arrays.items())
        manifest = {
            **identity,
            "classes": spec.class_names(root),
            "domains": spec.domain_names(),
            "vocabulary": spec.vocabulary(),
            "arrays": arrays,
            "checksum": hashlib.sha256(sums.encode()).hexdigest(),
        }
        (partial / MANIFEST).write_text(json.dumps(with_checksum(manifest), indent=1), encoding="utf-8")
        partial.replace(entry)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return manifest


def _save(path: Path, array: np.ndarray) -> dict[str, Any]:
    np.save(path, array, allow_pickle=False)
    return {"sha256": array_checksum(array), "bytes": path.stat().st_size}


def intact_manifest(entry: Path) -> dict[str, Any] | None:
    """The manifest if it and every file in it are whole; of files, see `checked_thoroughly`."""
    try:
        manifest: dict[str, Any] = json.loads((entry / MANIFEST).read_text(encoding="utf-8"))
        arrays = manifest["arrays"].items()
        if is_broken(manifest) or any(
            (entry / file).stat().st_size != about["bytes"] for file, about in arrays
        ):
            return None
        if _thoroughly and entry not in _known:
            if any(array_checksum(_mapped(entry / file)) != about["sha256"] for file, about in arrays):
                return None
            _known.add(entry)
    except Exception:  # of JSON or NumPy, depending on which byte is damaged
        return None
    return manifest


def _mapped(file: Path) -> np.ndarray:
    array: np.ndarray = np.load(file, mmap_mode="r", allow_pickle=False)
    return array


def _open(entry: Path, manifest: dict[str, Any]) -> Dataset:
    def split(domain: str, part: str) -> Split:
        x, y = (_mapped(entry / f"{domain}.{part}.{array}.npy") for array in ("x", "y"))
        return Split(x, y)

    return Dataset(
        name=manifest["name"],
        classes=tuple(manifest["classes"]),
        train={domain: split(domain, "train") for domain in manifest["domains"]},
        test={domain: split(domain, "test") for domain in manifest["domains"]},
        checksum=manifest["checksum"],
        vocabulary=manifest.get("vocabulary", ""),
    )
