"""Ray on this machine alone, started while the driver still imports and checks.

Ray takes three seconds to start, and forks its processes, which is not safe beside threads that compute. So a
process of its own starts Ray, says where it is, and ends it once the driver is gone, however that came about.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

_process: subprocess.Popen[str] | None = None
_address = ""


def begin() -> None:
    """Start Ray in the background, unless this process knows Ray already."""
    global _process, _address
    if "ray" in sys.modules or _is_running():
        return
    # What Ray does by itself where it is started; said here since we join it, and before it is imported.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    _address = ""
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
    """That of the Ray which was begun, once it has started; None if there is none."""
    global _address
    if not _is_running():
        return None
    assert _process is not None and _process.stdout is not None
    _address = _address or _process.stdout.readline().strip()
    return _address or None


def _is_running() -> bool:
    return _process is not None and _process.poll() is None


def _serve() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for the driver
    started = threading.Event()
    driver = threading.Thread(target=_wait_for_driver, args=(started,))
    driver.start()
    import ray

    ray.init(address="local", include_dashboard=False, log_to_driver=False)
    started.set()
    print(ray.get_runtime_context().gcs_address, flush=True)
    driver.join()
    ray.shutdown()


def _wait_for_driver(started: threading.Event) -> None:
    """Until it ends; if Ray has not started by then, it need not: its processes end with this one."""
    sys.stdin.read()
    if not started.is_set():
        os._exit(0)


if __name__ == "__main__":
    _serve()
