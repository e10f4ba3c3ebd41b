"""Where a result comes from: code, versions, hardware."""

from __future__ import annotations

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
