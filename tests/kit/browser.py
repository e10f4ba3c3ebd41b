"""Real Chromium for the tests of the page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, or a skipped test that says why."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, file: Path, width: int = 1280, **options: Any) -> Iterator[Any]:
    """The page from its file, with its script done; errors and requests to anywhere else fail the test."""
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options)
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: troubles.append(request.url) if _leaves(request.url, file) else None)
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=15_000)
    try:
        yield page
    finally:
        page.close()
    assert troubles == []


def _leaves(url: str, file: Path) -> bool:
    return not (url.startswith("data:") or url.partition("#")[0] == file.as_uri())
