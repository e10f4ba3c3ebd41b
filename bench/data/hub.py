"""The hub of pretrained models, where there may be no network."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import getproxies


@contextmanager
def no_waiting_for_a_missing_network() -> Iterator[None]:
    """The hub would try for a minute; offline, it looks into its cache alone."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not _is_reachable(urlsplit(constants.ENDPOINT).hostname)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _is_reachable(host: str | None) -> bool:
    """Whether its name is known; behind a proxy it need not be."""
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return bool(getproxies())
    return True
