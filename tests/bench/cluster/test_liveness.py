"""A run whose Ray has died ends with a sentence."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from bench.cluster import liveness
from bench.errors import UserError

pytestmark = pytest.mark.xdist_group("ray")


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_run_ends_even_if_somebody_swallows_the_first_interruption(
    ray_session: None, monkeypatch: pytest.MonkeyPatch, handler: Any
) -> None:
    """In the foreground, and in the background, where shells have Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, handler)
    monkeypatch.setattr(liveness, "_alive", lambda node: False)
    swallowed = 0
    try:
        with pytest.raises(UserError, match="Ray has died"), liveness.watched(every=0.01, again=0.01):
            while True:
                try:
                    time.sleep(0.1)
                except KeyboardInterrupt:
                    swallowed += 1
                    if swallowed == 2:
                        raise
    finally:
        signal.signal(signal.SIGINT, before)
    assert swallowed == 2
