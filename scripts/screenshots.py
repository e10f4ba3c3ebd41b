"""Takes the pictures of the page that the documentation shows: python scripts/screenshots.py RUN OUT."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, ViewportSize, sync_playwright

from bench.records.reader import load_run
from reports.report import Report


def show_bytes(page: Page) -> None:
    page.get_by_role("button", name="Bytes sent").click()
    page.evaluate("document.getElementById('curves').scrollIntoView()")
    page.locator("#curves-chart svg").hover()


def sort_by_average(page: Page) -> None:
    page.locator("#overview").get_by_role("button", name="AVG", exact=True).click()
    page.locator("#overview tbody tr").nth(4).locator("td").nth(4).hover()


VIEWS: tuple[tuple[str, ViewportSize, Literal["light", "dark"], Callable[[Page], None] | None], ...] = (
    ("page_desktop", {"width": 1200, "height": 1360}, "light", sort_by_average),
    ("page_phone", {"width": 390, "height": 1000}, "light", None),
    ("page_dark", {"width": 1200, "height": 1000}, "dark", show_bytes),
)


def main(run: Path, out: Path) -> None:
    """Three views, each in a page of its own."""
    file = Report(load_run(run)).write(("html",), run)[-1].absolute()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, size, scheme, prepare in VIEWS:
            page = browser.new_page(
                viewport=size, color_scheme=scheme, device_scale_factor=1.5, reduced_motion="reduce"
            )
            page.goto(file.as_uri())
            page.wait_for_selector("html[data-ready]")
            if prepare:
                prepare(page)
            page.wait_for_timeout(300)  # a frame or two, for what reacts to scrolling
            page.screenshot(path=out / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
