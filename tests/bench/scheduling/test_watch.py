"""A run whose Ray has died ends with a sentence."""

from __future__ import annotations

import time

import pytest

from bench.errors import UserError
from bench.scheduling import watch

pytestmark = pytest.mark.xdist_group("ray")


def test_a_run_ends_even_if_somebody_swallows_the_first_interruption(
    ray_session: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SECONDS", 0.01)
    monkeypatch.setattr(watch, "AGAIN", 0.01)
    monkeypatch.setattr(watch, "_alive", lambda node: False)
    swallowed = 0
    with pytest.raises(UserError, match="Ray has died"), watch.watched():
        while True:
            try:
                time.sleep(0.1)
            except KeyboardInterrupt:
                swallowed += 1
                if swallowed == 2:
                    raise
    assert swallowed == 2
