"""The page of a trade-off: it is one file of aggregates, escaped, and works in a real browser by pointer and keys."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from sqlanon import explore_tradeoff, render_explore
from sqlanon.cli.levels import parse_levels
from sqlanon.encoding.frequency.lattice import Lattice
from sqlanon.methods.generalization.lattice.refusal import levels_text
from sqlanon.runs.tradeoffs.tradeoff import Tradeoff
from tests.browser import browser, opened, watched
from tests.run_support import OPTIONS, duckdb_url, open_database

pytestmark = pytest.mark.slow

__all__ = ["browser", "opened", "watched"]

SECRET = "zz-secret-value"
ODD = ['</script><img src=x onerror="document.title=1">', "it's \N{GRINNING FACE}", 'a, "b" = $(c)', "plain"]
COMMAND = "sqlanon run 'my policy.yml'"


@pytest.fixture(scope="module")
def tradeoff(tmp_path_factory: pytest.TempPathFactory) -> Tradeoff:
    """Of a table whose columns have odd names, and whose values are secret but for those that the policy maps."""
    with open_database(duckdb_url(tmp_path_factory.mktemp("explored") / "one.duckdb")) as database:
        rows = [(20 + i * 7 % 40, f"{SECRET}{i % 3}", "fm"[i % 2], "abc"[i % 3]) for i in range(60)]
        table = database.create({ODD[0]: "INTEGER", ODD[1]: "TEXT", ODD[2]: "TEXT", ODD[3]: "TEXT"}, rows)
        kinds = [
            {"intervals": [5, 10, 20]},
            {"mask": "right"},
            "suppress",
            {"mapping": {"a": "<b>one", "b": "<b>one", "c": "two"}},
        ]
        roles = {name: {"role": "quasi-identifier", "hierarchy": kind} for name, kind in zip(ODD, kinds, strict=True)}
        policy = database.policy(table, roles, privacy=[{"model": "k-anonymity", "k": 4}], suppression=0.1)
        return explore_tradeoff(policy, options=OPTIONS)


@pytest.fixture(scope="module")
def file(tradeoff: Tradeoff, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "explore.html"
    path.write_text(render_explore(tradeoff, COMMAND), encoding="utf-8")
    return path


def _command(tradeoff: Tradeoff, place: int) -> str:
    levels = tradeoff.candidates[place].levels
    assert levels is not None
    nothing = tuple(0 for _ in levels)
    lattice = Lattice(tuple(column.name for column in tradeoff.columns), nothing, nothing, nothing)
    return f"{COMMAND} --levels {shlex.quote(levels_text(lattice, levels))}"


def _place_on_screen(page: Any, place: int) -> tuple[float, float]:
    """The pixel at which the keyboard's mark stands once it has reached a candidate."""
    page.locator("#chart").focus()
    page.keyboard.press("Home")
    order = page.evaluate("JSON.parse(document.getElementById('data').textContent).candidates.length")
    for _ in range(order):
        if page.evaluate("window.document.querySelector('.hover').dataset.place") == str(place):
            break
        page.keyboard.press("ArrowRight")
    box = page.locator(".hover").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


# --- the file


def test_no_value_of_the_data_is_in_the_page(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert SECRET not in text
    assert "zz-" not in text
    assert "such as \\u003cb\\u003eone (2 labels)" in text  # of the policy's mapping


def test_the_block_of_data_is_the_json_of_the_trade_off_and_ends_where_it_should(
    file: Path, tradeoff: Tradeoff
) -> None:
    text = file.read_text(encoding="utf-8")
    (block,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert block.isascii()
    assert not set(block) & set("<>&")
    data = json.loads(block)
    assert {key: data[key] for key in tradeoff.as_json()} == json.loads(json.dumps(tradeoff.as_json()))
    assert "<img" not in text
    assert text.count("</script>") == 2


def test_a_trade_off_in_which_nothing_satisfies_the_policy_has_a_page(tradeoff: Tradeoff, browser: Any) -> None:
    failing = tuple(dataclasses.replace(one, satisfies=False, score=None) for one in tradeoff.candidates)
    page = browser.new_page()
    page.set_content(render_explore(dataclasses.replace(tradeoff, candidates=failing, best=None)))
    assert "No candidate satisfies the policy." in page.locator("#front-table").text_content()
    assert "does not satisfy the policy" in page.locator("#fixed-text").text_content()
    page.close()


# --- in a browser


def test_it_opens_from_disk_asks_for_nothing_and_shows_the_best(
    opened: tuple[Any, list[str]], file: Path, tradeoff: Tradeoff
) -> None:
    page, noted = opened
    assert [one for one in noted if not one.startswith("data:")] == [file.as_uri()]
    assert tradeoff.best is not None
    assert page.locator("#command").text_content() == _command(tradeoff, tradeoff.best)
    assert page.title().endswith(": the trade-off")
    assert page.locator("#columns tbody th").all_text_contents() == ODD
    shown = [parse_levels(shlex.split(_command(tradeoff, place))[-1]) for place in range(len(tradeoff.candidates))]
    levels = [dict(zip(ODD, one.levels or (), strict=True)) for one in tradeoff.candidates]
    assert shown == levels


def test_a_click_fixes_a_candidate(opened: tuple[Any, list[str]], tradeoff: Tradeoff) -> None:
    page, _ = opened
    place = tradeoff.front[0]
    x, y = _place_on_screen(page, place)
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    one = tradeoff.candidates[place]
    assert page.locator("#command").text_content() == _command(tradeoff, place)
    shown = page.locator("#risks tbody td").all_text_contents()
    assert [int(text.replace(",", "")) for text in (shown[5], shown[7], shown[9], shown[11])] == [
        *(one.least, one.classes, one.rows, one.suppressed)
    ]
    sizes = [row.split() for row in page.locator("#sizes tbody tr").all_inner_texts()]
    assert [(int(row[-2]), int(row[-1])) for row in sizes] == [(part.kept, part.suppressed) for part in one.sizes]


def test_keys_go_from_one_to_the_next_and_fix(opened: tuple[Any, list[str]], tradeoff: Tradeoff) -> None:
    page, _ = opened
    ordered = sorted(
        (one.greatest, one.loss or 0.0, place) for place, one in enumerate(tradeoff.candidates) if one.rows
    )
    page.locator("#chart").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert "greatest risk" in page.locator("#hovered").text_content()
    page.keyboard.press("Enter")
    assert page.locator("#command").text_content() == _command(tradeoff, ordered[1][2])
    page.keyboard.press("End")
    page.keyboard.press(" ")
    assert page.locator("#command").text_content() == _command(tradeoff, ordered[-1][2])


def test_a_slider_of_levels_fixes_the_candidate_with_these_levels(
    opened: tuple[Any, list[str]], tradeoff: Tradeoff
) -> None:
    page, _ = opened
    assert tradeoff.best is not None
    levels = list(tradeoff.candidates[tradeoff.best].levels or ())
    for number, level in enumerate((1, 2, 0, 1)):
        page.locator("#columns input").nth(number).fill(str(level))
        levels[number] = level
    place = [one.levels for one in tradeoff.candidates].index(tuple(levels))
    assert page.locator("#command").text_content() == _command(tradeoff, place)
    shows = page.locator("#columns tbody tr td:nth-child(3)").all_text_contents()
    texts = [
        "intervals of width 5, such as [0-5)",
        "without the last 2 characters, such as abc**",
        "the values themselves",
        "such as <b>one (2 labels)",
    ]
    assert shows == texts


def test_the_filter_of_risk_leaves_what_is_within_it(opened: tuple[Any, list[str]], tradeoff: Tradeoff) -> None:
    page, _ = opened
    page.locator("#limit").fill("500")
    risks = [one.greatest for one in tradeoff.candidates if one.rows]
    limit = (min(risks) * max(risks)) ** 0.5  # of a scale of ratios, from the least to the greatest that is there
    within = sum(0 < one.greatest <= limit for one in tradeoff.candidates)
    assert 0 < within < len(tradeoff.candidates)
    assert page.locator("#hovered").text_content().startswith(f"{within} of {len(tradeoff.candidates)} candidates")
    page.locator("#satisfying").check()
    both = sum(0 < one.greatest <= limit and one.satisfies for one in tradeoff.candidates)
    assert page.locator("#hovered").text_content().startswith(f"{both} of ")


def test_the_front_is_listed_and_its_buttons_fix(opened: tuple[Any, list[str]], tradeoff: Tradeoff) -> None:
    page, _ = opened
    buttons = page.locator("#front-table button")
    assert buttons.count() == len(tradeoff.front)
    buttons.last.click()
    assert page.locator("#command").text_content() == _command(tradeoff, tradeoff.front[-1])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_screen_and_prints(opened: tuple[Any, list[str]], scheme: str) -> None:
    page, _ = opened
    page.emulate_media(color_scheme=scheme)
    paper = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 24, 31)"}[scheme]
    assert page.evaluate("getComputedStyle(document.querySelector('#chart .mark')).fill") == paper
    page.set_viewport_size({"width": 420, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    page.emulate_media(media="print", color_scheme=scheme)
    assert page.evaluate("getComputedStyle(document.querySelector('#chart .mark')).fill") == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")


def _marks(page: Any, axis: str) -> list[float]:
    """The numbers at the lines of an axis, in percent."""
    anchor = {"risk": "middle", "utility": "end"}[axis]
    texts = page.locator(f"#chart text[text-anchor={anchor}]:not(.title)").all_text_contents()
    return [float(text.removesuffix(" %").removeprefix("< ")) for text in texts]


def _is_round(number: float) -> bool:
    """Tell whether a number has one digit, or two of which the last is a 0 or a 5."""
    digits = f"{number:.6g}".replace(".", "").strip("0")
    return len(digits) <= 1 or (len(digits) == 2 and digits[-1] == "5") or float(number) % 10 == 0


@pytest.mark.parametrize("width", [420, 1000])
def test_marks_are_round_and_texts_keep_their_size(opened: tuple[Any, list[str]], width: int) -> None:
    """A narrow page draws a narrower picture, in place of a smaller one, and nothing is wider than the page."""
    page, _ = opened
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function("w => document.querySelector('.points').viewBox.baseVal.width <= w", arg=width)
    for axis in ("risk", "utility"):
        marks = _marks(page, axis)
        assert len(marks) >= 3
        assert all(map(_is_round, marks)), marks
    drawn = page.evaluate("document.querySelector('.points').viewBox.baseVal.width")
    assert page.locator("#chart").bounding_box()["width"] == pytest.approx(drawn, abs=1)
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_page_starts_on_the_mean_where_the_greatest_risk_piles_up(
    tradeoff: Tradeoff, browser: Any, tmp_path: Path
) -> None:
    """So it is where half of those that satisfy the policy, or more, have classes of k as their smallest."""
    for piled, axis in ((False, "greatest"), (True, "mean")):
        satisfying = [one for one in tradeoff.candidates if one.satisfies and one.rows]
        risks = [0.25 if piled else 0.25 / (1 + number) for number in range(len(satisfying))]
        candidates = tuple(dataclasses.replace(one, greatest=risk) for one, risk in zip(satisfying, risks, strict=True))
        text = render_explore(dataclasses.replace(tradeoff, candidates=candidates), COMMAND)
        path = tmp_path / f"{axis}.html"
        path.write_text(text, encoding="utf-8")
        page = browser.new_page()
        page.goto(path.as_uri())
        assert page.locator("#axis").input_value() == axis
        assert page.locator("#limit").is_disabled() == piled
        page.close()


def test_the_title_of_a_file_is_its_name_alone(tradeoff: Tradeoff) -> None:
    text = render_explore(dataclasses.replace(tradeoff, source="/home/ann/secret/people.csv"), COMMAND)
    assert "<h1>people.csv</h1>" in text
    assert "/home/ann" not in text.partition('id="data"')[0]
