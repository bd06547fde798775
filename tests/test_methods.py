"""Methods: each part that a method names is there, and is what the registry takes it for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import sqlanon
from sqlanon import Policy, PolicyError, check_policy, parse_policy, run
from sqlanon.algorithms.base import Algorithm
from sqlanon.policy import AlgorithmParameters, ModelParameters
from sqlanon.results.method_result import MethodResult
from sqlanon.runs.source import ReleaseSource
from sqlanon.support.methods import Method, own_methods
from sqlanon.support.template_files import template_directory
from tests.missing_method import MISSING, NAMES

METHODS = {method.package: method for method in own_methods()}
FUNCTIONS = ("rules", "check", "audit", "page", "search_picture")


@pytest.mark.parametrize("package", METHODS)
def test_each_named_part_is_there(package: str) -> None:
    method = METHODS[package]
    kinds = (
        (method.algorithms, AlgorithmParameters),
        (method.guarantees, ModelParameters),
        (method.searches, Algorithm),
    )
    for named, kind in kinds:
        for name, part in named.items():
            assert issubclass(method.load(part), kind), name
    for part in FUNCTIONS:
        if getattr(method, part) is not None:
            assert callable(method.load(getattr(method, part))), part


@pytest.mark.parametrize("package", METHODS)
def test_an_algorithm_searches_for_classes_or_its_method_has_a_source_and_all_that_goes_with_one(package: str) -> None:
    method = METHODS[package]
    for name, part in method.algorithms.items():
        assert method.load(part).recodes.makes_classes == (name in method.searches)
    if len(method.searches) < len(method.algorithms):
        assert issubclass(method.load(str(method.source)), ReleaseSource)
        assert issubclass(method.load(str(method.result)), MethodResult)
        assert None not in (method.check, method.audit, method.key, method.text, method.page)


def test_a_part_that_is_not_there_is_an_error() -> None:
    own = next(iter(METHODS.values()))
    with pytest.raises(ModuleNotFoundError):
        own.load("nowhere:Nothing")
    with pytest.raises(AttributeError):
        own.load("policy:Nothing")


def test_keys_of_records_differ() -> None:
    keys = [method.key for method in METHODS.values() if method.key is not None]
    assert len(keys) == len(set(keys))


def test_a_package_outside_is_not_one_of_the_programs_own() -> None:
    assert all(method.is_own for method in METHODS.values())
    assert not Method("elsewhere", place=1).is_own


def test_the_tests_know_what_each_method_adds() -> None:
    """So they tell a failure for want of a method from any other."""
    added = {method.package.rpartition(".")[2]: {*method.algorithms, *method.guarantees} for method in METHODS.values()}
    assert added == {name: set(names) for name, names in NAMES.items() if name not in MISSING}


def test_nobody_outside_a_room_names_a_template_of_it() -> None:
    """A template that two methods need lies with a part of the core, so that a method can be removed."""
    named = re.compile(r"\bmethods/(\w+)/[\w/]*\w\b(?!/)(?<!_)")
    folders = (template_directory(), Path(sqlanon.__file__).parent)
    wrong = [
        (str(path), match[0])
        for folder in folders
        for path in (*folder.rglob("*.j2"), *folder.rglob("*.py"))
        for match in named.finditer(path.read_text(encoding="utf-8"))
        if path.relative_to(folder).parts[:2] != ("methods", match[1])
        if (template_directory() / f"{match[0]}.sql.j2").exists()
    ]
    assert wrong == []


def test_a_policy_names_an_algorithm_where_the_default_one_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    places = "source: {url: 'duckdb:///:memory:', table: t}\nrelease: {table: r}\n"
    monkeypatch.setattr("sqlanon.policy.algorithms._DEFAULT", "nowhere")
    with pytest.raises(PolicyError, match="algorithm is missing; choose from"):
        parse_policy(
            f"{places}attributes: {{a: {{role: quasi-identifier}}}}\nprivacy: [{{model: k-anonymity, k: 2}}]\n"
        )


@pytest.mark.parametrize("part", ["source", "check"])
def test_a_method_without_classes_that_lacks_a_part_is_refused(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (method,) = [one for one in METHODS.values() if "hide-rules" in one.algorithms]
    monkeypatch.setattr("sqlanon.runs.sources.method_of", lambda _: replace(method, **{part: None}))
    with pytest.raises(PolicyError, match=f"makes no classes, and its package names no {part}"):
        run(hiding_policy()) if part == "source" else check_policy(hiding_policy())


def hiding_policy() -> Policy:
    rules = "[{if: {a: x}, then: {b: y}}]"
    return parse_policy(
        "source: {url: 'duckdb:///:memory:', table: t}\nrelease: {table: r}\n"
        "attributes: {a: {role: insensitive}, b: {role: insensitive}}\nalgorithm: {name: hide-rules}\n"
        f"privacy: [{{model: hidden-rules, support: 2, confidence: 0.5, rules: {rules}}}]\n"
    )
