"""Two nodes in networks of their own, without a shared disk, and a switch between them that can fail.

    python -m tests.kit.cut_network SECONDS HIDDEN PROGRAM...

starts a cluster of two nodes with one CPU each and runs the program on the first one when both are there,
with the cluster's address as BENCH_ADDRESS. The folder HIDDEN is on the first node alone. When a file `cut`
appears in the working directory, nothing that a node sends reaches the other one for so many seconds; the
file is then removed. The whole runs inside `unshare -rmn`, see `in_namespaces`, and all its processes belong
to one session.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.kit.cli import wait_until

FIRST, SECOND, PORT = "10.99.0.1", "10.99.0.2", 6399
ADDRESS = f"{FIRST}:{PORT}"
RAY = str(Path(sys.executable).with_name("ray"))
RAYS_OWN = "/tmp/ray"
"""Where Ray keeps logs and sockets, whose names must be short; each node has its own."""
PATIENCE = 300
"""Seconds until both nodes must be there; the machine may be busy with other things."""


def can_cut() -> bool:
    """Whether the user may make network namespaces, and switches and wires between them."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    script = "ip link add switch type bridge && ip link add near type veth peer name far"
    return subprocess.run(["unshare", "-rmn", "sh", "-c", script], capture_output=True).returncode == 0


def in_namespaces(seconds: float, hidden: Path, *program: object) -> list[str]:
    """The command that runs a program on the first of two nodes."""
    module = [sys.executable, "-m", "tests.kit.cut_network"]
    return ["unshare", "-rmn", *module, str(seconds), str(hidden), *map(str, program)]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def start_quietly(*command: str) -> subprocess.Popen[bytes]:
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)


def start_second(hidden: Path) -> subprocess.Popen[bytes]:
    """A process that starts Ray in a network of its own as soon as it has a wire, and again if Ray ends.

    The default route goes nowhere; Ray finds out by it which address is its node's.
    """
    script = f"""
        mount -t tmpfs none "{hidden}"
        mount -t tmpfs none {RAYS_OWN}; export TMPDIR={RAYS_OWN}
        until ip link show far > /dev/null 2>&1; do sleep 0.1; done
        ip link set lo up; ip addr add {SECOND}/24 dev far; ip link set far up; ip route add default dev far
        while true
        do
            {RAY} start --address {ADDRESS} --node-ip-address {SECOND} --num-cpus 1 --block
            sleep 1
        done
    """
    return start_quietly("unshare", "-mn", "sh", "-c", script)


def connect(other: int) -> None:
    """A switch on this side, and a wire from it to the network of another process."""
    own = Path("/proc/self/ns/net").readlink()
    assert wait_until(lambda: Path(f"/proc/{other}/ns/net").readlink() != own, PATIENCE)
    ip("link", "set", "lo", "up")
    ip("link", "add", "switch", "type", "bridge")
    ip("link", "add", "near", "type", "veth", "peer", "name", "far")
    ip("link", "set", "far", "netns", str(other))
    ip("link", "set", "near", "master", "switch")
    ip("link", "set", "near", "up")
    ip("addr", "add", f"{FIRST}/24", "dev", "switch")
    ip("link", "set", "switch", "up")
    ip("route", "add", "default", "dev", "switch")


def start_first() -> None:
    head = [RAY, "start", "--head", "--port", str(PORT), "--node-ip-address", FIRST, "--num-cpus", "1"]
    start_quietly(*head, "--include-dashboard=false", "--block")


def wait_for_both() -> None:
    import ray

    def there() -> bool:
        try:
            ray.init(ADDRESS, log_to_driver=False, logging_level=logging.CRITICAL)
        except ConnectionError:
            return False
        return True

    assert wait_until(there, PATIENCE), "the first node did not come up"
    assert wait_until(lambda: sum(node["Alive"] for node in ray.nodes()) == 2, PATIENCE), "no second node"
    ray.shutdown()


def cut_when_asked(seconds: float) -> None:
    while True:
        if Path("cut").exists():
            ip("link", "set", "near", "nomaster")
            time.sleep(seconds)
            ip("link", "set", "near", "master", "switch")
            Path("cut").unlink()
        time.sleep(0.2)


def main() -> None:
    seconds, hidden, *program = sys.argv[1:]
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    Path(RAYS_OWN).mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", RAYS_OWN], check=True)
    connect(start_second(Path(hidden)).pid)
    start_first()
    waiting = "from tests.kit.cut_network import wait_for_both; wait_for_both()"
    if start_quietly(sys.executable, "-c", waiting).wait() != 0:  # Ray says much meanwhile
        sys.exit("the nodes did not come up")
    threading.Thread(target=cut_when_asked, args=(float(seconds),), daemon=True).start()
    done = subprocess.run(program, env={**os.environ, "BENCH_ADDRESS": ADDRESS})
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
