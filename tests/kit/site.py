"""A site of two suites and what is needed to look at it in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.records.reader import Run, load_run
from reports.site import Hyperparameter, MethodInfo, write_site
from tests.kit.rounds import rounds, write_rounds
from tests.kit.run_folders import Planned, write_run

LEVELS = {"local": 0.3, "fedavg": 0.6, "fedprox": 0.55, "moon": 0.62, "fedlsa": 0.7, "central": 0.9}
DOMAINS = {"digits": ("mnist", "usps", "svhn", "syn"), "pacs": ("photo", "art_painting", "cartoon", "sketch")}
PROX = MethodInfo(
    "fedprox",
    "FedProx",
    "FedProx: FedAvg with a proximal term.",
    "FedProx: FedAvg with a proximal term.\n\n    CE + μ/2 ‖w − w₀‖² < 1",
    (Hyperparameter("mu", "0.01", "μ, the weight of the proximal term"),),
)
TUNING = {
    "trials": 8,
    "search": "optuna",
    "selected_on": "validation",
    "methods": {"fedprox": {"set": {"mu": 0.123456}}},
}


def two_runs(folder: Path) -> list[Run]:
    """Five seeds of six methods on two datasets for which papers print numbers."""
    runs = []
    for number, (suite, domains) in enumerate(DOMAINS.items()):
        cells = [
            Planned(
                method,
                seed,
                tuple(level - 0.02 * place + 0.005 * seed + 0.03 * number for place in range(4)),
                label={"moon": "MOON"}.get(method, ""),
                rounds=10,
                dataset=suite,
            )
            for method, level in LEVELS.items()
            for seed in range(5)
        ]
        path = write_run(folder / suite, cells, domains, suite, tuning=TUNING)
        for cell in cells:
            assert cell.test is not None
            write_rounds(path, cell, rounds(dict(zip(domains, cell.test, strict=True))))
        runs.append(load_run(path))
    return runs


def site_of(folder: Path) -> Path:
    """The start page of a site."""
    return write_site(two_runs(folder / "runs"), {"fedprox": PROX}, folder / "site")


@contextmanager
def visited(browser: Any, file: Path, width: int = 1280, **options: Any) -> Iterator[Any]:
    """A page of a site; errors, missing files and requests that leave the site fail the test."""
    home = file.parent if (file.parent / "assets").is_dir() else file.parent.parent
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options)
    troubles: list[str] = []

    def check(request: Any) -> None:
        if not request.url.startswith(("data:", home.as_uri())):
            troubles.append(request.url)

    def failed(request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # by going to another page before all was there
            troubles.append(f"failed: {request.url}")

    page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", failed)
    page.on("request", check)
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=15_000)
    try:
        yield page
    finally:
        page.close()
    assert not troubles, troubles
