"""The page of a table's risk: one file of aggregates, escaped, in a real browser by light, dark, paper and keys."""

from __future__ import annotations

import html
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from sqlanon import policy_risk, render_risk, table_risk
from sqlanon.results.risk import TableRisk
from tests.browser import browser, opened, watched
from tests.cli.support import call
from tests.run_support import anonymize, duckdb_url, open_database

pytestmark = pytest.mark.slow

__all__ = ["browser", "opened", "watched"]

SECRET = "zz-secret-value"
ODD = ['</style><img src=x onerror="document.title=1">', "it's \N{GRINNING FACE}", 'a, "b" = $(c)']
COLUMNS = {
    "who": "INTEGER",
    "e-mail": "TEXT",
    "w": "DOUBLE PRECISION",
    ODD[0]: "INTEGER",
    ODD[1]: "TEXT",
    ODD[2]: "TEXT",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = duckdb_url(tmp_path_factory.mktemp("risky") / "one.duckdb")
    with open_database(url) as database:
        rows = [
            (i // 2, f"{SECRET}{i}@example.org", 2.5, 20 + i * 7 % 40, f"{SECRET}{i % 3}", "fm"[i % 2])
            for i in range(60)
        ]
        database.create(COLUMNS, rows, "people")
        database.create(COLUMNS, rows + rows, "everybody")
    return url


@pytest.fixture(scope="module")
def measured(url: str) -> TableRisk:
    """Everything that can be asked, of a table whose columns have odd names."""
    return table_risk(url, "people", ODD, weights="w", household="who", population="everybody", subsets=2, suda=2)


@pytest.fixture(scope="module")
def file(measured: TableRisk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "risk.html"
    path.write_text(render_risk(measured, "<people>"), encoding="utf-8")
    return path


def test_no_value_of_the_data_is_in_the_page(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "zz-" not in text
    assert "<img" not in text
    assert html.escape(ODD[0], quote=False).replace('"', "&#34;") in text
    assert "<script" not in text
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", text)


def test_it_shows_the_figures_and_asks_for_nothing(
    opened: tuple[Any, list[str]], file: Path, measured: TableRisk
) -> None:
    page, noted = opened
    assert [one for one in noted if not one.startswith("data:")] == [file.as_uri()]
    assert page.title() == "<people>: risk"
    headings = ["Class sizes", "Attackers", "Individual risk", "Minimal sample uniques", "Columns that single rows out"]
    assert page.locator("h3").all_text_contents() == [*headings, "Columns that look like identifiers"]
    attackers = page.locator("table").first.locator("tbody tr").all_inner_texts()
    assert [row.split()[0] for row in attackers] == ["Prosecutor", "Journalist", "Marketer"]
    assert "100 %" in attackers[0]
    assert "50 %" in attackers[1]  # everybody is there twice
    assert measured.subsets is not None
    names = page.locator("table").nth(1).locator("tbody th").all_text_contents()
    assert sorted(names) == sorted(", ".join(one.columns) for one in measured.subsets)


def test_keys_reach_what_scrolls(opened: tuple[Any, list[str]]) -> None:
    page, _ = opened
    reached = []
    for _ in range(page.locator("[tabindex]").count()):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert reached == [one.get_attribute("aria-label") for one in page.locator("[tabindex]").all()]
    assert len(reached) == 3
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_screen_and_prints(opened: tuple[Any, list[str]], scheme: str) -> None:
    page, _ = opened
    page.emulate_media(color_scheme=scheme)
    paper = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 24, 31)"}[scheme]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
    page.set_viewport_size({"width": 420, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    page.emulate_media(media="print", color_scheme=scheme)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_a_policy_shows_source_and_release(url: str, browser: Any) -> None:
    with open_database(url) as database:
        roles = {
            "who": "identifier",
            "e-mail": "identifier",
            "w": "insensitive",
            **dict.fromkeys(ODD, "quasi-identifier"),
        }
        policy = database.policy("people", roles, subject="none")
    before = policy_risk(policy, sample_of=0.1)
    assert "There is no release yet" in render_risk(before, "people")
    anonymize(policy)
    page = browser.new_page()
    page.set_content(render_risk(policy_risk(policy, sample_of=0.1), "people"))
    assert page.locator("h2").all_text_contents() == ["Source", "Release"]
    assert page.locator("nav a").all_text_contents() == ["Source", "Release"]
    assert page.locator("h3", has_text="Alone in the population").count() == 2
    page.close()


def test_an_empty_table_has_a_page(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("a,b\n", encoding="utf-8")
    page = tmp_path / "risk.html"
    result = call("risk", tmp_path / "none.csv", "--qi", "a,b", "--html", page)
    assert result.exit_code == 0, result.output
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "<h1>none.csv</h1>" in page.read_text(encoding="utf-8")
    assert call("risk", tmp_path / "none.csv", "--qi", "a,b", "--html", tmp_path / "none" / "risk.html").exit_code == 4
