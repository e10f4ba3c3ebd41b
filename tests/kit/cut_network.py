"""Two nodes in network namespaces of their own, and the wire between them, which can be cut.

    python -m tests.kit.cut_network SECONDS PROGRAM...

starts a cluster of two nodes with one CPU each and runs the program on the first one, with the cluster's
address as BENCH_ADDRESS. When a file `cut` appears in the working directory, the nodes cannot reach each
other for so many seconds; the file is then removed. The whole runs inside `unshare -rmn`, see
`in_namespaces`, and all its processes belong to one session.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

FIRST, SECOND, PORT = "10.99.0.1", "10.99.0.2", 6399
RAY = str(Path(sys.executable).with_name("ray"))


def can_cut() -> bool:
    """Whether the user may make network namespaces and wires between them."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    command = ["unshare", "-rmn", "ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"]
    return subprocess.run(command, capture_output=True).returncode == 0


def in_namespaces(seconds: float, *program: str) -> list[str]:
    """The command that runs a program on the first of two nodes."""
    return ["unshare", "-rmn", sys.executable, "-m", "tests.kit.cut_network", str(seconds), *program]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def connect(other: int) -> None:
    """A wire from here to the namespace of another process."""
    ip("link", "add", "va", "type", "veth", "peer", "name", "vb")
    ip("link", "set", "vb", "netns", str(other))
    ip("link", "set", "lo", "up")
    ip("addr", "add", f"{FIRST}/24", "dev", "va")
    ip("link", "set", "va", "up")


def second_node() -> subprocess.Popen[bytes]:
    """A process that starts Ray in a network of its own as soon as it has the wire."""
    script = f"""
        until ip link show vb > /dev/null 2>&1; do sleep 0.1; done
        ip link set lo up; ip addr add {SECOND}/24 dev vb; ip link set vb up
        until {RAY} start --address {FIRST}:{PORT} --node-ip-address {SECOND} --num-cpus 1 --block
        do sleep 1; done
    """
    quiet = subprocess.DEVNULL
    return subprocess.Popen(["unshare", "-n", "sh", "-c", script], stdout=quiet, stderr=quiet)


def cut_when_asked(seconds: float) -> None:
    while True:
        if Path("cut").exists():
            ip("link", "set", "va", "down")
            time.sleep(seconds)
            ip("link", "set", "va", "up")
            Path("cut").unlink()
        time.sleep(0.2)


def main() -> None:
    seconds, *program = sys.argv[1:]
    second = second_node()
    time.sleep(0.5)  # until it is in its namespace
    connect(second.pid)
    head = [RAY, "start", "--head", "--port", str(PORT), "--node-ip-address", FIRST, "--num-cpus", "1"]
    quiet = subprocess.DEVNULL
    subprocess.Popen([*head, "--include-dashboard=false", "--block"], stdout=quiet, stderr=quiet)
    threading.Thread(target=cut_when_asked, args=(float(seconds),), daemon=True).start()
    done = subprocess.run(program, env={**os.environ, "BENCH_ADDRESS": f"{FIRST}:{PORT}"})
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
