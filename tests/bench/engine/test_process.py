"""What a process that trains asks of its machine, seen in the system's own account of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")

AFTER_USE_SHARE = """
import resource
import torch
from bench.engine.process import use_share

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

use_share(threads=1)
def step():
    block = torch.ones(4 * 2**20)  # 16 MiB
    return block.data_ptr() + 8 * 2**20  # in its middle: it may begin within a page that is not advised

step()
before = faults()
addresses = {step() for _ in range(10)}
print("faults", faults() - before)

advised = set()
for line in open("/proc/self/smaps"):
    first, *others = line.split()
    if not first.endswith(":"):
        start, end = (int(bound, 16) for bound in first.split("-"))
    elif first == "VmFlags:" and "hg" in others:
        advised |= {address for address in addresses if start <= address < end}
print("advised", advised == addresses)
print("threads", torch.get_num_threads())
"""


@pytest.mark.skipif(not PAGES.exists(), reason="no Linux with huge pages")
def test_freed_memory_is_kept_in_huge_pages_and_one_thread_is_used() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", AFTER_USE_SHARE], capture_output=True, text=True, check=True
    ).stdout
    found = dict(line.split() for line in printed.splitlines())
    assert int(found["faults"]) < 100, "10 blocks of 16 MiB have 40,960 pages of 4 KiB"
    assert found["advised"] == "True"
    assert found["threads"] == "1"


AFTER_TWO_JOBS = """
import os
import torch
from bench.engine.process import keep_share, use_share
from bench.startup.memory import present_bytes

use_share(threads=1)
job = torch.ones(2**27)  # 512 MiB
used = present_bytes()
del job
keep_share(cpus=os.cpu_count())
print("kept", present_bytes() > used - 2**27)
keep_share(cpus=0)
print("returned", present_bytes() < used - 2**28)
"""


@pytest.mark.skipif(not PAGES.exists(), reason="no Linux with huge pages")
def test_a_process_keeps_no_more_freed_memory_than_its_share() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", AFTER_TWO_JOBS], capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["kept", "True", "returned", "True"]
