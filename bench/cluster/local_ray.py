"""Ray on this machine alone, started while the driver still imports and checks.

Ray takes three seconds to start, and forks its processes, which is not safe beside threads that compute. So a
process of its own starts Ray, says where it is, and ends it once the driver is gone, however that came about.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

_process: subprocess.Popen[str] | None = None
_said: list[str] = []
"""The address of Ray, and the socket of its part on this node."""


def begin() -> None:
    """Start Ray in the background, unless this process knows Ray already."""
    global _process
    if "ray" in sys.modules or _is_running():
        return
    # What Ray does by itself where it is started; said here since we join it, and before it is imported.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    _said.clear()
    _process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        # No processes for trials in advance: Tune gives its own an environment, and would use none of them.
        env={**os.environ, "RAY_prestart_worker_first_driver": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def address() -> str | None:
    """That of the Ray which was begun, once it has started; None if there is none, or it has died since."""
    if not _is_running():
        return None
    assert _process is not None and _process.stdout is not None
    if not _said:
        _said[:] = (_process.stdout.readline() + _process.stdout.readline()).split()
    if len(_said) == 2 and _answer(*_said):
        return _said[0]
    _process.kill()  # and what is left of Ray with it
    _process.wait()
    return None


def _is_running() -> bool:
    return _process is not None and _process.poll() is None


def reach(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()


def _answer(address: str, local: str) -> bool:
    """Whether Ray is still there."""
    try:
        reach(address)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(local)
    except OSError:
        return False
    return True


def _serve() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for the driver
    import ray

    ray.init(address="local", include_dashboard=False, log_to_driver=False)
    print(ray.get_runtime_context().gcs_address, ray.nodes()[0]["RayletSocketName"], sep="\n", flush=True)
    sys.stdin.read()  # until the driver is gone
    ray.shutdown()


if __name__ == "__main__":
    _serve()
