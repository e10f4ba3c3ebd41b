"""Writes arrays to .npz files whose bytes depend on the arrays alone."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from bench.data.cache import array_checksum, cache_root
from bench.errors import UserError

FOLDER = "arrays"


def write_npz(arrays: Mapping[str, ArrayLike], cache: Path | None = None) -> Path:
    """The file's path, relative to the cache if that is the usual one. A file that exists is kept."""
    converted = {key: np.asarray(array) for key, array in arrays.items()}
    for key, array in converted.items():
        if array.dtype.kind == "O":
            raise UserError(f"{key} is not an array of numbers or strings; its rows may differ in length")
    sums = "".join(f"{key} {array_checksum(array)}\n" for key, array in converted.items())
    place = Path(FOLDER, f"{hashlib.sha256(sums.encode()).hexdigest()[:16]}.npz")
    target = (cache or cache_root()) / place
    if not target.exists():
        try:
            _write(target, converted)
        except OSError as error:
            raise UserError(
                f"cannot write the arrays to {target}: {error.strerror or error}; make room there or set "
                "BENCH_CACHE to another folder"
            ) from error
    return place if cache is None else target


def _write(target: Path, arrays: Mapping[str, np.ndarray]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(draft, "w") as archive:
            for key, array in arrays.items():
                # A ZipInfo has a fixed date, where numpy.savez writes the current one.
                with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
