"""The report as people see it: it loads nothing, its pictures can be seen and heard, it fits screens and paper."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from sqlanon import run_report, sweep
from sqlanon.report.drawing import svg
from tests.browser import browser, watched
from tests.run_support import OPTIONS, Database, anonymize, duckdb_url, open_database
from tests.test_report import LEVELED, PLAIN, PRIVACY, ROWS

__all__ = ["browser", "watched"]

LONG = "a_column_whose_name_is_as_long_as_a_name_in_a_database_may_be_63"
WIDTHS = {"phone": 360, "narrow": 420, "desktop": 1280}


def _page(database: Database, algorithm: str, attributes: dict[str, Any]) -> str:
    """A report with every part: of a table with a very long name of a column, and other k tried."""
    columns = {"age": "INTEGER", "job": "TEXT", "zip": "TEXT", "sex": "TEXT", "disease": "TEXT", LONG: "INTEGER"}
    table = database.create(columns, [(*row, n % 3) for n, row in enumerate(ROWS)])
    roles = attributes | {LONG: "insensitive"}
    policy = database.policy(table, roles, privacy=PRIVACY, algorithm={"name": algorithm}, suppression=0.05)
    run = anonymize(policy).run
    sweep(policy, [8], options=OPTIONS)
    return run_report(run, policy=policy)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of a tree and of a lattice, as files."""
    directory = tmp_path_factory.mktemp("reports")
    with open_database(duckdb_url(directory / "one.duckdb")) as database:
        made = {"tree": ("mondrian", PLAIN), "lattice": ("optimal", LEVELED)}
        for name, (algorithm, attributes) in made.items():
            text = _page(database, algorithm, attributes)
            (directory / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: directory / f"{name}.html" for name in made}


@pytest.mark.parametrize("name", ["tree", "lattice"])
def test_the_page_loads_nothing_and_says_nothing_on_the_console(
    pages: dict[str, Path], watched: tuple[Any, list[str]], name: str
) -> None:
    page, noted = watched
    page.goto(pages[name].as_uri())
    assert [one for one in noted if not one.startswith("data:")] == [pages[name].as_uri()]
    assert page.title().startswith("t")
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("name", ["tree", "lattice"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_screen_and_every_picture_is_seen(
    pages: dict[str, Path], watched: tuple[Any, list[str]], name: str, width: str
) -> None:
    page, _ = watched
    page.set_viewport_size({"width": WIDTHS[width], "height": 800})
    page.goto(pages[name].as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]
    pictures = page.get_by_role("img").all()
    assert len(pictures) == 5 + 6  # one for each column
    for picture in pictures:
        box = picture.bounding_box()
        assert box["width"] >= 250
        assert box["height"] >= 60
        assert len(picture.locator("> title").text_content()) > 5
        assert len(picture.locator("> desc").text_content()) > 10
    small = "[...document.querySelectorAll('p, td, th, li, dd, figcaption')].filter(e => parseFloat(getComputedStyle(e)"
    assert page.evaluate(small + ".fontSize) < 13).length") == 0


def test_pictures_hold_their_texts(pages: dict[str, Path], watched: tuple[Any, list[str]]) -> None:
    page, _ = watched
    for path in pages.values():
        page.goto(path.as_uri())
        beyond = page.evaluate(
            """[...document.querySelectorAll('svg')].flatMap(svg => {
                const [, , width, height] = svg.getAttribute('viewBox').split(' ').map(Number);
                return [...svg.querySelectorAll('text')].filter(text => {
                    const box = text.getBBox();
                    return box.x < -1 || box.y < -1 || box.x + box.width > width + 1 || box.y + box.height > height + 1;
                }).map(text => text.textContent);
            })"""
        )
        assert beyond == []


@pytest.mark.parametrize("name", ["tree", "lattice"])
def test_a_narrow_screen_needs_no_scrolling_sideways(
    pages: dict[str, Path], watched: tuple[Any, list[str]], name: str
) -> None:
    page, _ = watched
    page.set_viewport_size({"width": 420, "height": 800})
    page.goto(pages[name].as_uri())
    wider = "[...document.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1"
    beyond = page.evaluate(wider + " && getComputedStyle(e).overflowX != 'visible').map(e => e.outerHTML.slice(0, 80))")
    assert beyond == []
    unnamed = "[...document.querySelectorAll('.stacked tbody td')].filter(e => !e.dataset.label).length"
    assert page.evaluate(unnamed) == 0


CONTRASTS = """() => {
    const channels = text => text.match(/[\\d.]+/g).map(Number);
    const luminance = rgb => rgb.slice(0, 3).map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, place) => sum + c * [0.2126, 0.7152, 0.0722][place], 0);
    const behind = element => {
        const color = channels(getComputedStyle(element).backgroundColor);
        return color.length == 4 && color[3] == 0 && element.parentElement ? behind(element.parentElement) : color;
    };
    return [...document.querySelectorAll('h1, h2, h3, p, li, td, th, dt, dd, a, code, caption, figcaption, pre')]
        .filter(element => element.textContent.trim())
        .map(element => {
            const [a, b] = [channels(getComputedStyle(element).color), behind(element)].map(luminance);
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_colours_of_the_screen(
    pages: dict[str, Path], watched: tuple[Any, list[str]], scheme: str
) -> None:
    page, _ = watched
    page.emulate_media(color_scheme=scheme)
    page.goto(pages["lattice"].as_uri())
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 24, 31)"}[scheme]
    assert min(page.evaluate(CONTRASTS)) >= 4.5
    grounds = "[...document.querySelectorAll('svg > rect:first-of-type')].map(e => getComputedStyle(e).fill)"
    assert set(page.evaluate(grounds)) == {paper}


def test_every_colour_of_the_pictures_follows_the_page() -> None:
    style = resources.files("sqlanon.report").joinpath("style.css").read_text(encoding="utf-8")
    colours = {value for value in vars(svg).values() if isinstance(value, str) and value.startswith("#")}
    assert len(colours) == 8
    for colour in colours:
        assert f'svg [fill="{colour}"]' in style
        assert f'svg [stroke="{colour}"]' in style


def test_before_and_after_differ_without_colour(pages: dict[str, Path], watched: tuple[Any, list[str]]) -> None:
    page, _ = watched
    page.goto(pages["tree"].as_uri())
    fills = page.evaluate(
        "[...document.querySelectorAll('svg[aria-labelledby^=risk] rect')].map(rect => rect.getAttribute('fill'))"
    )
    assert {"#ffffff", "#0b66a8"} <= set(fills)


def test_it_prints_on_paper_without_loss(pages: dict[str, Path], watched: tuple[Any, list[str]]) -> None:
    page, _ = watched
    page.goto(pages["lattice"].as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 960})  # A4 less its margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    cut = "[...document.querySelectorAll('.scroll, figure')].filter(e => e.scrollWidth > 681).length"
    assert page.evaluate(cut) == 0
    assert not page.locator("nav").is_visible()
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type ?/Page\b(?!s)", printed)) <= 10
