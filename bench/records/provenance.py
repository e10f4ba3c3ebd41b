"""Where a result comes from: code, versions, hardware."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("fl-bench-harness", "torch", "torchvision", "ray", "numpy", "scikit-learn", "mlxtend")

CODE = ("bench", "methods", "reports", "search_spaces")
"""Folders of a checkout whose files, known to git or not, decide what a result is."""


@cache
def commit() -> str:
    """The commit of the harness, with a + if there is code beyond it; empty outside a checkout."""
    here = Path(__file__).parents[2]
    try:
        head = _git(here, "rev-parse", "--short=12", "HEAD")
        changes = _git(here, "status", "--porcelain", "--", *CODE)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changes else "")


def code_versions() -> dict[str, str]:
    """What the bits of a result may depend on: versions of packages, and a digest of the harness's own code.

    The part of a version that names a build, such as +cpu, is left out.
    """
    found = {name: version.partition("+")[0] for name, version in versions().items()}
    return {**found, "code": _code_digest()}


@cache
def _code_digest() -> str:
    here = Path(__file__).parents[2]
    files = [
        file
        for folder in ("bench", "methods", "search_spaces")
        for pattern in ("*.py", "*.yaml")
        for file in (here / folder).rglob(pattern)
    ]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(here).as_posix()}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def hardware(device: str, threads: int) -> dict[str, Any]:
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "device": device,
        "threads": threads,
    }


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
