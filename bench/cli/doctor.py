"""`bench doctor`: is this machine ready?"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.cli.inspection_requests import DoctorRequest
from bench.cli.request_options import command_of
from bench.errors import UserError
from bench.records.files import check_writable


class Finding(NamedTuple):
    good: bool
    what: str


@command_of(DoctorRequest)
def doctor(request: DoctorRequest) -> int:
    """Check this machine: versions, devices, folders, Ray and MLflow."""
    from bench.cli.console import make_console

    console = make_console()
    sound = True
    for finding in _findings(request.data_root, request.out):
        sound &= finding.good
        mark, colour = ("ok  ", "green") if finding.good else ("bad ", "red")
        console.print(mark, style=colour, end="")
        console.say(finding.what)
    return 0 if sound else 1


def _findings(data_root: Path | None, out: Path) -> Iterator[Finding]:
    yield from _packages()
    yield _devices()
    yield Finding(True, f"{os.cpu_count()} CPU cores")
    yield _folder(out)
    yield from _data(data_root)
    yield _ray()


def _packages() -> Iterator[Finding]:
    for package in ("torch", "torchvision", "ray", "mlflow"):
        try:
            yield Finding(True, f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            yield Finding(False, f"{package} is not installed; run make setup")
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError) as error:
        yield Finding(False, f"torchvision does not fit torch ({error}); install both in one go: make setup")


def _devices() -> Finding:
    import torch

    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count()))
        return Finding(True, f"CUDA devices: {names}")
    if torch.backends.mps.is_available():
        return Finding(True, "Apple MPS device")
    return Finding(True, "no GPU: cells run on the CPU")


def _folder(out: Path) -> Finding:
    try:
        existing = check_writable(out.absolute())
    except UserError as error:
        return Finding(False, str(error))
    return Finding(True, f"folder {out} can be written, {shutil.disk_usage(existing).free / 1e9:.0f} GB free")


def _data(data_root: Path | None) -> Iterator[Finding]:
    from bench.data import load_dataset

    try:
        dataset = load_dataset("digits_mini", {})
        yield Finding(True, f"built-in digits, checksum {dataset.checksum[:12]}")
    except (UserError, OSError) as error:
        yield Finding(False, f"built-in digits: {error}")
    if data_root is None:
        yield Finding(True, "no data root given (--data-root or BENCH_DATA_ROOT): built-in data only")
    else:
        missing = "" if data_root.is_dir() else " is not a folder; give another with --data-root"
        yield Finding(not missing, f"data root {data_root}{missing}")


def _ray() -> Finding:
    import ray

    from bench.cluster.nodes import start_ray

    try:
        start_ray()
        resources = ray.cluster_resources()
        return Finding(True, f"Ray starts: {resources.get('CPU', 0):g} CPU, {resources.get('GPU', 0):g} GPU")
    except Exception as error:
        return Finding(False, f"Ray does not start: {error}")
    finally:
        ray.shutdown()
