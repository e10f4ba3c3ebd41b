"""The site in a real browser: its pages, its search, its links, on a desktop and on a phone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from reports.report import RankingReport
from reports.site import write_site
from tests.kit.site import site_of, two_runs, visited

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site_of(tmp_path_factory.mktemp("site"))


def shown(page: Any, where: str) -> list[str]:
    return list(page.locator(f"#{where} .cards li:visible b").all_inner_texts())


def test_the_start_page_has_ranks_suites_methods_and_papers(browser: Any, index: Path) -> None:
    with visited(browser, index) as page:
        assert shown(page, "suites") == ["digits", "pacs"]
        assert {"FedProx", "MOON", "FedLSA"} <= set(shown(page, "methods"))
        assert shown(page, "papers") == ["fedlsa_aaai2025"]
        ranks = page.locator("#ranking tbody th a").all_inner_texts()
        assert ranks == ["FedLSA", "MOON", "FedAvg", "FedProx"]
        drawn = page.locator("#ranking img")
        assert drawn.evaluate("image => image.complete && image.naturalWidth > 100")


def test_the_ranks_are_those_of_the_report(index: Path, tmp_path: Path) -> None:
    table = RankingReport(two_runs(tmp_path)).table
    assert table is not None
    text = index.read_text(encoding="utf-8")
    assert all(f'data-value="{rank:g}"' in text for rank in (row.entries[0].mean for row in table.rows))


def test_search_filters_the_start_page(browser: Any, index: Path) -> None:
    with visited(browser, index) as page:
        page.get_by_role("searchbox").fill("prox")
        assert shown(page, "methods") == ["FedProx"]
        assert shown(page, "suites") == ["digits", "pacs"]  # both have a row of it
        page.get_by_role("searchbox").fill("pacs")
        assert shown(page, "suites") == ["pacs"] and shown(page, "methods") == []
        assert page.locator("#methods .none").is_visible()
        page.get_by_role("searchbox").press("Escape")
        assert len(shown(page, "suites")) == 2


def test_search_leads_from_any_page_to_another(browser: Any, index: Path) -> None:
    with visited(browser, index.parent / "methods" / "fedprox.html") as page:
        page.get_by_role("searchbox").fill("nothing like it")
        assert page.locator("#found").inner_text() == "Nothing of that name."
        page.get_by_role("searchbox").fill("pac")
        page.locator("#found a").first.click()
        page.wait_for_selector("html[data-ready]")
        assert page.url.endswith("/suites/pacs.html")


def test_every_link_leads_somewhere(index: Path) -> None:
    pages = [file for file in index.parent.rglob("*.html") if file.name != "report.html"]
    assert len(pages) == 1 + 2 + 6 + 1
    for file in pages:
        text = file.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"#]+)[^"]*"', text):
            if not target.startswith("data:"):
                assert (file.parent / target).is_file(), f"{file.name}: {target}"
        for anchor in re.findall(r'href="index.html#(\w+)"', text):
            assert f'id="{anchor}"' in index.read_text(encoding="utf-8")


def test_the_page_of_a_suite_says_how_to_check_it(browser: Any, index: Path) -> None:
    with visited(browser, index.parent / "suites" / "digits.html") as page:
        commands = page.locator(".command").all_inner_texts()
        assert commands[0] == "bench verify results/digits.jsonl --cells 3"
        assert commands[1] == "bench study --suite digits --trials 8 --seeds 5 --out rerun"
        assert "0123456789ab" in page.locator("#provenance").inner_text()
        assert page.locator("#results tbody th a").all_inner_texts()[:3] == ["Local", "FedAvg", "FedProx"]
        page.locator("#results tbody a", has_text="FedProx").first.click()
        assert page.url.endswith("/methods/fedprox.html")
        page.go_back()
        page.get_by_role("link", name="every cell, curve and configuration").click()
        page.wait_for_selector("html[data-ready]")
        assert page.locator("#overview").is_visible()


def test_the_page_of_a_method_shows_definition_values_and_gains(browser: Any, index: Path) -> None:
    with visited(browser, index.parent / "methods" / "fedprox.html") as page:
        assert "CE + μ/2 ‖w − w₀‖² < 1" in page.locator("#definition").inner_text()
        assert "mu" in page.locator("#hyperparameters").inner_text()
        assert "mu = 0.1235" in page.locator("#tuned").inner_text()
        rows = page.locator("#results tbody tr").all_inner_texts()
        assert len(rows) == 2 and all("−5.00" in row for row in rows)
        assert "4 of 4" in rows[0] and "0.00032" in rows[0]  # MB: 160 bytes each way
        assert "ahead of FedAvg in 0 of 2" in page.locator("header").inner_text()
        assert page.locator(".delta .behind").count() == 2


def test_the_page_of_a_paper_compares_printed_and_measured(browser: Any, index: Path) -> None:
    with visited(browser, index.parent / "papers" / "fedlsa_aaai2025.html") as page:
        first = page.locator("tbody tr", has_text="FedAvg").first.inner_text().split("\t")
        assert first[1:3] == ["AVG", "60.89"]
        ours = 60 - 2 * 1.5 + 1.0  # mean over domains and seeds
        assert first[3].startswith(f"{ours:.2f}") and first[5] == f"−{60.89 - ours:.2f}"
        assert "office_caltech" in page.locator("main").inner_text()


@pytest.mark.parametrize("where", ["index.html", "suites/digits.html", "methods/fedprox.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_in_both_colours(browser: Any, index: Path, where: str, scheme: str) -> None:
    with visited(browser, index.parent / where, width=390, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_the_same_results_give_the_same_bytes(index: Path, tmp_path: Path) -> None:
    again = site_of(tmp_path)
    for file in sorted(index.parent.rglob("*")):
        if file.is_file():
            assert file.read_bytes() == (again.parent / file.relative_to(index.parent)).read_bytes(), file


def test_a_site_needs_results(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no results to show"):
        write_site([], {}, tmp_path)
