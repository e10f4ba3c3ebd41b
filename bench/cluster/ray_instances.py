"""Which Rays are running, and which of them were started to be shared.

Ray tries for minutes to connect to a port where something else answers, and prints a line per attempt. So
this file is also a program: it asks in a process that prints nothing and is ended after a few seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import NamedTuple

SECONDS = 15
"""Until a Ray must have answered; the process that asks takes one or two of them to start."""


class Access(StrEnum):
    SHARED = "shared"
    """Started with `ray start`, or by a launcher that calls it, for everybody who knows the address."""
    PRIVATE = "private"
    """Started by `ray.init()`, as `bench run` does, for one program; it ends with that program."""
    LOCKED = "locked"
    """Asks for a token that we do not have."""


class RayInstance(NamedTuple):
    address: str
    access: Access


def ask(address: str | None = None, seconds: float = SECONDS) -> list[RayInstance]:
    """The Ray at HOST:PORT, or all on this machine; one that does not answer is left out."""
    command = [sys.executable, "-P", __file__, *([address] if address else [])]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            answers, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            answers, _ = process.communicate()
    found = [line.split() for line in answers.splitlines()]
    return [RayInstance(address, Access(access)) for address, access in found]


def use_token() -> None:
    """Send the user's token if there is one, as Ray does for a cluster that it finds by itself."""
    from ray._private.authentication.authentication_token_setup import (
        maybe_enable_token_auth_if_token_available,
    )

    maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def _on_this_machine() -> list[str]:
    from ray._private.services import find_gcs_addresses

    return sorted(find_gcs_addresses())


def _access(address: str) -> Access | None:
    from ray._common.usage.usage_lib import get_cluster_metadata
    from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled
    from ray._raylet import GcsClient  # type: ignore[attr-defined]
    from ray.exceptions import AuthenticationError, RayError

    try:
        ensure_token_if_auth_enabled(
            create_token_if_missing=False
        )  # without one, Ray would abort the process
        metadata = get_cluster_metadata(GcsClient(address=address))
    except AuthenticationError:
        return Access.LOCKED
    except (RayError, AttributeError):  # AttributeError: it has only begun to start, and has no metadata yet
        return None
    return Access.PRIVATE if metadata["ray_init_cluster"] else Access.SHARED


def _answer(addresses: list[str]) -> None:
    if not addresses:
        use_token()
        addresses = _on_this_machine()

    def say(address: str) -> None:
        if access := _access(address):
            os.write(1, f"{address} {access}\n".encode())  # whole lines, whoever else writes or is ended

    with ThreadPoolExecutor() as pool:  # one that hangs holds up no other
        list(pool.map(say, addresses))


if __name__ == "__main__":
    _answer(sys.argv[1:])
