"""Policies of one table beside each other: by models and algorithms, on one page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sqlanon import PolicyError, compare_policies
from tests.browser import browser, watched
from tests.cli.support import call, only_object, write_policy
from tests.run_support import OPTIONS, open_database

__all__ = ["browser", "watched"]

ROLES = {"a": "quasi-identifier", "b": "quasi-identifier", "s": "sensitive"}


def create(url: str) -> str:
    with open_database(url) as database:
        return database.create(dict.fromkeys("abs", "INTEGER"), [(n % 11, n % 7, n % 3) for n in range(80)])


@pytest.mark.either_engine
def test_candidates_are_those_of_each_policy(database_url: str) -> None:
    table = create(database_url)
    with open_database(database_url) as database:
        plain = database.policy(table, ROLES, privacy=[{"model": "k-anonymity", "k": 4}])
        diverse = database.policy(
            table,
            dict(reversed(ROLES.items())),
            privacy=[{"model": "k-anonymity", "k": 4}, {"model": "distinct-l-diversity", "attribute": "s", "l": 3}],
            algorithm={"name": "ordered-sets"},
        )
        hopeless = database.policy(table, ROLES, privacy=[{"model": "k-anonymity", "k": 81}])
        elsewhere = database.policy(f"{table}_2", ROLES)
        fewer = database.policy(table, {**ROLES, "b": "insensitive"})
    compared = compare_policies({"plain": plain, "diverse": diverse, "hopeless": hopeless}, options=OPTIONS)
    assert [(one.policy, one.k) for one in compared.candidates] == [("plain", None), ("diverse", None)]
    assert [(k, reason.split(":")[0]) for k, reason in compared.refusals] == [(81, "hopeless")]
    assert compared.algorithm == "mondrian, ordered-sets"
    assert not any("k = 1" in warning for warning in compared.warnings)
    alone = compare_policies({"diverse": diverse}, options=OPTIONS).candidates[0]
    by_name = dict(zip("ba", alone.losses, strict=True))
    assert compared.candidates[1].losses == (by_name["a"], by_name["b"])
    swept = compare_policies({"plain": plain, "diverse": diverse}, ks=[3, 5], options=OPTIONS).candidates
    assert [(one.policy, one.k) for one in swept] == [("plain", 3), ("plain", 5), ("diverse", 3), ("diverse", 5)]
    with pytest.raises(PolicyError, match="other is of another table than plain"):
        compare_policies({"plain": plain, "other": elsewhere})
    with pytest.raises(PolicyError, match="other has other quasi-identifiers"):
        compare_policies({"plain": plain, "other": fewer})
    with pytest.raises(PolicyError, match="no policy"):
        compare_policies({})


@pytest.mark.either_engine
def test_no_k_is_asked_for_where_the_policy_asks_for_none(database_url: str) -> None:
    table = create(database_url)
    with open_database(database_url) as database:
        close = database.policy(table, ROLES, privacy=[{"model": "t-closeness", "attribute": "s", "t": 0.4}])
    (warning,) = (one for one in compare_policies({"close": close}, options=OPTIONS).warnings if "k-anonymity" in one)
    assert warning.startswith("close: No k-anonymity is asked for")


def test_a_file_is_one_table_however_policies_name_it(tmp_path: Path) -> None:
    table = "a,b\n" + "".join(f"{n % 5},{n % 3}\n" for n in range(30))
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.csv").write_text(table)
    text = (
        "release: {file: r.csv}\nprivacy: [{model: k-anonymity, k: 2}]\n"
        "attributes: {a: {role: quasi-identifier}, b: {role: quasi-identifier}}\nsource: {file: %s}\n"
    )
    policies = {}
    for name, file in (("here/one", "t.csv"), ("there/same", "../here/t.csv"), ("there/other", "t.csv")):
        policies[name] = tmp_path / f"{name}.yml"
        policies[name].write_text(text % file)
    one, same, other = policies.values()
    assert len(only_object(call("explore", one, "--with", same, "--json").stdout)["candidates"]) == 2
    assert "is of another table" in call("explore", one, "--with", other).stderr
    assert "one.yml is given twice" in call("explore", one, "--with", one).stderr
    other.write_text(text % "t.csv" + "algorithm: {name: nobody}\n")
    assert f"This is about {other}." in call("explore", one, "--with", other).stderr


@pytest.mark.either_engine
def test_the_page_has_the_command_of_each_policy(
    patients_url: str, tmp_path: Path, watched: tuple[Any, list[str]]
) -> None:
    first = write_policy(tmp_path, patients_url)
    second, page = tmp_path / "it's other.yml", tmp_path / "explore.html"
    second.write_text(re.sub(r"(k: *)\d+", r"\g<1>25", first.read_text()))
    found = only_object(call("explore", first, "--with", second, "-o", page, "--json").stdout)
    assert [one["policy"] for one in found["candidates"]] == [str(first), str(second)]
    assert "--with runs each policy" in call("explore", first, "--with", second, "--candidates", "9").stderr
    text = call("explore", first, "--with", second, "--progress", "none").stdout
    assert re.search(r"policy +k +greatest risk", text)
    shown, noted = watched
    shown.goto(page.as_uri())
    data = json.loads(shown.locator("#data").text_content())
    assert list(data["commands"]) == [str(first), str(second)]
    shown.locator("#chart").focus()
    for key, place in (("Home", 1), ("End", 0)):  # ascending in risk
        shown.keyboard.press(key)
        shown.keyboard.press("Enter")
        name = found["candidates"][place]["policy"]
        assert shown.locator("#command").text_content() == data["commands"][name]
        assert shown.locator("#fixed-text").text_content().startswith(f"{name}: greatest risk")
        assert "Write k" not in shown.locator("#fixed-text").text_content()
    assert [one for one in noted if not one.startswith(("data:", "file:"))] == []
