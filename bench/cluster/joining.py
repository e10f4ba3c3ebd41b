"""Which Ray cluster `--address` stands for: one that was started to be shared, never a private one."""

from __future__ import annotations

import os

from bench.cluster import local_ray
from bench.cluster.ray_instances import SECONDS, Access, RayInstance, ask, use_token
from bench.errors import UserError

START = "start one with 'ray start --head', or leave --address out to use this machine only"


def check_address(address: str | None) -> None:
    """Refuse an address that cannot be that of a cluster; nothing is asked yet."""
    if address is None or address == "auto":
        return
    if address.startswith("ray://"):  # a driver outside the cluster would have no node for its run folder
        raise UserError(
            f"--address {address}: bench must run on a node of the cluster; start it on one, with --address "
            "auto, or submit it as a Ray job"
        )
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal() and port.isascii() and 0 < int(port) < 2**16):
        raise UserError(f"--address {address}: give HOST:PORT, such as 127.0.0.1:6379, or auto")


def shared_cluster(address: str, seconds: float = SECONDS) -> str:
    """HOST:PORT of the cluster at this address, or of the only one on this machine for "auto".

    `seconds`: until it must have answered.
    """
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address  # as Ray does; set inside a Ray job
    check_address(address)
    return _the_one_here(seconds) if address == "auto" else _the_one_at(address, seconds)


def _the_one_at(address: str, seconds: float) -> str:
    try:
        local_ray.reach(address)
    except (OSError, UnicodeError) as error:  # UnicodeError: no name of a machine
        raise UserError(
            f"no Ray cluster at '{address}': {error}; give --address its address, auto, or leave it out"
        ) from None
    found = ask(address, seconds)
    if not found:
        raise UserError(
            f"no Ray cluster at '{address}': what listens there did not answer as Ray within {seconds:g} s; "
            "give --address its address, auto, or leave it out"
        )
    refuse_private(found[0])
    if found[0].access is Access.LOCKED:
        raise UserError(
            f"the Ray cluster at '{address}' asks for a token: set RAY_AUTH_MODE=token, with the token in "
            "~/.ray/auth_token"
        )
    return address


def refuse_private(instance: RayInstance) -> None:
    """A private Ray ends with its program, and has planned its resources for that program only."""
    if instance.access is Access.PRIVATE:
        raise UserError(
            f"the Ray at '{instance.address}' was started by a program for itself and ends with it, so it is "
            f"no cluster to join; {START}"
        )


def _the_one_here(seconds: float) -> str:
    found = ask(seconds=seconds)
    shared = [instance.address for instance in found if instance.access is Access.SHARED]
    if len(shared) > 1:
        raise UserError(
            f"--address auto: there are {len(shared)} Ray clusters on this machine; give the address of one: "
            f"{', '.join(shared)}"
        )
    if not shared:
        raise UserError(f"--address auto: {_others(found)}; {START}")
    use_token()
    return shared[0]


def _others(found: list[RayInstance]) -> str:
    """Why there is nothing to join."""
    if not found:
        return "there is no Ray cluster on this machine"
    if private := [instance.address for instance in found if instance.access is Access.PRIVATE]:
        return (
            "found only Ray that other programs, such as another bench run, started for themselves "
            f"({', '.join(private)})"
        )
    locked = ", ".join(instance.address for instance in found)
    return f"the Ray at {locked} asks for a token that is not in ~/.ray/auth_token"
