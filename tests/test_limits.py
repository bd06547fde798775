"""Top and bottom coding: outliers don't show in labels, and neither do they in numbers that stand for regions."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.hierarchies.limits import Limits
from sqlanon.inquiries.profile.draft import propose_policy
from sqlanon.inquiries.profile.profiling import profile
from sqlanon.policy.loading import parse_policy
from sqlanon.releases.rules.export_sql import rules_select
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.sql import Relation
from tests.jobs_support import carry_out, frozen
from tests.random_cases import many
from tests.rules_support import apply
from tests.run_support import Database, anonymize, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

INCOMES = [-50, 1010, 2000, 3000, 4000, 83_456_789, None, None]
OPEN: dict[str, list[Any]] = {
    "label": [("NULL",), ("[*-1010]",), ("[2000-3000]",), ("[4000-*]",)],
    "bounds": [(None, None), (500, 1010), (2000, 3000), (4000, 10_000)],
    "mean": [(None,), (755.0,), (2500.0,), (7000.0,)],
    "midpoint": [(None,), (755.0,), (2500.0,), (7000.0,)],
}
TYPES = ["INTEGER", "DECIMAL(12, 0)", "DOUBLE PRECISION", "REAL"]


@pytest.mark.parametrize("show", OPEN)
def test_numbers_beyond_the_limits_count_as_these(database: Database, show: str) -> None:
    columns = {f"q{place}": type_ for place, type_ in enumerate(TYPES)}
    table = database.create({**columns, "id": "INTEGER"}, [(*[n] * len(TYPES), i) for i, n in enumerate(INCOMES)])
    role = {"role": "quasi-identifier", "show": show, "bottom": 500, "top": 10_000}
    released = database.release(table, {**dict.fromkeys(columns, role), "id": "insensitive"})
    width = len(OPEN[show][0])
    for place in range(0, width * len(TYPES), width):
        assert {row[place : place + width] for row in released} == set(OPEN[show]), TYPES[place // width]
    assert sorted(row[-1] for row in released) == list(range(8))


@pytest.mark.parametrize(
    ("values", "limits", "labels"),
    [
        ([5, 70, 80, 99], {"top": 60}, {"[5-*]"}),
        ([70, 80, 5, 6], {"top": 60}, {"[60-*]", "[5-6]"}),
        ([1, 2, 5, 6], {"bottom": 3}, {"[*-3]", "[5-6]"}),
        ([1, 2, 70, 80], {"bottom": 3, "top": 60}, {"[*-3]", "[60-*]"}),
        ([1, 2, None, 80], {"bottom": 3, "top": 60}, {"{NULL, *-*}"}),
        ([60, 60, 5, 6], {"top": 60}, {"[60-*]", "[5-6]"}),
        ([5, 5, 6, 6], {"bottom": 1, "top": 60}, {"5", "6"}),
        ([None, 80, 90, 7, 7], {"top": 60}, {"{NULL, 7-*}", "{NULL, 7}", "[60-*]"}),
    ],
)
def test_labels_have_open_ends(
    database: Database, values: list[int | None], limits: dict[str, int], labels: set[str]
) -> None:
    table = database.create({"q": "INTEGER"}, [(n,) for n in values])
    released = database.release(table, {"q": {"role": "quasi-identifier", **limits}})
    assert {row[0] for row in released} <= labels


def test_ranges_of_postgres_are_unbounded(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        table = database.create({"q": "INTEGER"}, [(n,) for n in INCOMES])
        role = {"role": "quasi-identifier", "show": "range", "bottom": 500, "top": 10_000}
        database.release(table, {"q": role})
        found = {row[0] for row in database.sql(f"SELECT CAST(q AS TEXT) FROM {table}_r")}
        assert found == {None, "(,1011)", "[2000,3001)", "[4000,)"}


@pytest.mark.parametrize("type_", TYPES)
def test_a_quantile_is_taken_from_the_table(database: Database, type_: str) -> None:
    values = [*range(1, 200), 10_000_000, None]
    table = database.create({"q": type_}, [(n,) for n in values])
    role = {"role": "quasi-identifier", "show": "bounds", "bottom": {"quantile": 0.01}, "top": {"quantile": 0.99}}
    role["nulls"] = "allow"  # the NULL is in the class of the least numbers
    released = database.release(table, {"q": role})
    assert min(row[0] for row in released if row[0] is not None) == 2
    assert max(row[1] for row in released if row[1] is not None) == 198


@pytest.mark.parametrize("special", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_stay_apart(database: Database, special: str) -> None:
    values = [1.0, 2.0, 3.0, 4.0, 500.0, float(special), float(special)]
    table = database.create({"q": "DOUBLE PRECISION"}, [(n,) for n in values])
    released = database.release(table, {"q": {"role": "quasi-identifier", "bottom": 0, "top": {"quantile": 0.8}}})
    labels = {row[0] for row in released}
    assert len(labels) > 1
    assert not any("500" in label or "inity" in label for label in labels)


@pytest.mark.parametrize(
    ("type_", "said", "problem"),
    [
        ("TEXT", {"top": 5}, "top is a limit of numbers"),
        ("DATE", {"bottom": 5}, "bottom is a limit of numbers"),
        ("INTEGER", {"top": 5.5}, "5.5 is no whole number"),
        ("INTEGER", {"top": 3_000_000_000}, "beyond the values of"),
        ("DECIMAL(6, 2)", {"top": 5.125}, "more digits after the point"),
        ("DECIMAL(6, 2)", {"top": 12_345}, "beyond the values of"),
        ("INTEGER", {"top": 5, "hierarchy": {"mapping": {"1": "a"}}}, "does not go with a mapping hierarchy"),
    ],
)
def test_limits_without_a_meaning_are_refused(
    database: Database, type_: str, said: dict[str, Any], problem: str
) -> None:
    table = database.create({"q": type_, "p": "INTEGER"}, [(None, 1), (None, 1)])
    policy = database.policy(table, {"q": {"role": "quasi-identifier", **said}, "p": "quasi-identifier"})
    with pytest.raises(PolicyError, match=problem) as raised:
        anonymize(policy)
    assert "attributes.q" in str(raised.value)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"top": "5"}, "must be a number, or {quantile"),
        ({"top": True}, "must be a number, or {quantile"),
        ({"top": {"quantile": 1}}, "must be a number, or {quantile"),
        ({"top": {"quantil": 0.9}}, "must be a number, or {quantile"),
        ({"top": float("nan")}, "must be a number, or {quantile"),
        ({"bottom": 5, "top": 5}, "has a bottom that is not below its top"),
        ({"top": 5, "role": "sensitive"}, "which an attribute with role sensitive does not use"),
    ],
)
def test_limits_of_policies_are_checked(database: Database, said: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        database.policy("t", {"q": {"role": "quasi-identifier", **said}})


def test_quantiles_that_meet_are_refused(database: Database) -> None:
    table = database.create({"q": "INTEGER"}, [(n,) for n in (0, 0, 0, 0, 1)])
    role = {"role": "quasi-identifier", "bottom": {"quantile": 0.1}, "top": {"quantile": 0.5}}
    with pytest.raises(PolicyError, match=r"attributes\.q: its bottom is not below its top"):
        anonymize(database.policy(table, {"q": role}))


def test_a_numeric_without_a_scale(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        values = [Decimal("1.5"), Decimal("1.50"), Decimal("NaN"), Decimal("NaN"), Decimal("12345678.125"), Decimal(80)]
        table = database.create({"q": "NUMERIC"}, [(n,) for n in values])
        released = database.release(table, {"q": {"role": "quasi-identifier", "top": {"quantile": 0.75}}})
        assert {row[0] for row in released} == {"1.5", "[80-*]", "NaN"}


# --- with hierarchies of intervals


SEARCHES: list[dict[str, Any]] = [
    {"name": "mondrian"},
    {"name": "rothko-t"},
    {"name": "optimal"},
    {"name": "incognito"},
    {"name": "top-down"},
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search["name"])
@pytest.mark.parametrize("type_", TYPES)
def test_the_interval_of_a_limit_is_open(database: Database, type_: str, search: dict[str, Any]) -> None:
    values = [3, 4, 21, 22, 31, 33, 96, 120, 5_000_000, -70]
    table = database.create({"q": type_, "id": "INTEGER"}, [(n, i) for i, n in enumerate(values)])
    role = {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 30]}, "bottom": 0, "top": 95}
    released = database.release(table, {"q": role, "id": "insensitive"}, algorithm=search)
    labels = {row[0] for row in released}
    assert all(label.startswith("[*-") or label.endswith("-*]") or "30" in label or label == "*" for label in labels)
    assert not any("5000000" in label or "70" in label for label in labels)


@pytest.mark.parametrize(
    ("limits", "intervals", "expected"),
    [
        ({"top": 95}, [10], {"[90-*]", "[0-10)"}),
        ({"top": 90}, [10], {"[90-*]", "[0-10)"}),
        ({"top": 95}, [10, 100], {"[90-*]", "[0-10)"}),
        ({"bottom": 5}, [10], {"[*-10)", "[90-100)", "[120-130)"}),
        ({"bottom": 15}, [20], {"[*-20)", "[80-100)", "[120-140)"}),
        ({"bottom": 15, "top": 18}, [20], {"[*-*]"}),
    ],
)
@pytest.mark.parametrize("name", ["mondrian", "optimal"])
def test_labels_of_intervals(
    database: Database, limits: dict[str, int], intervals: list[int], expected: set[str], name: str
) -> None:
    table = database.create({"q": "INTEGER"}, [(n,) for n in (1, 2, 5, 6, 91, 93, 95, 99, 120, 121)])
    role = {"role": "quasi-identifier", "hierarchy": {"intervals": intervals}, **limits}
    released = database.release(table, {"q": role}, algorithm={"name": name})
    shown = {row[0] for row in released}
    groups = {label for label in shown if label.startswith("[")}
    assert {label for label in groups if "*" in label} <= {
        *expected,
        *(f"[{n}-*]" for n in limits.values()),
        *(f"[*-{n}]" for n in limits.values()),
    }
    assert any("*" in label for label in groups)


# --- a table whose numbers were clamped before is the oracle


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int | None], dict[str, Any], dict[str, Any]]:
    """Numbers, a role without limits, and limits."""
    values = draw(st.lists(st.sampled_from([*range(-12, 40, 3), 7, 20, 95, 120, 5000, None]), min_size=3, max_size=30))
    role: dict[str, Any] = {"role": "quasi-identifier", "show": draw(st.sampled_from(["label", "bounds", "midpoint"]))}
    widths = draw(st.sampled_from([None, [10], [4, 10], [2.5, 20]]))
    if widths is not None:
        role["hierarchy"] = {"intervals": widths, "origin": draw(st.sampled_from([0, 3]))}
    limits = {"bottom": draw(st.sampled_from([None, -5, 0, 7])), "top": draw(st.sampled_from([8, 10, 20, 95]))}
    return values, role, {key: end for key, end in limits.items() if end is not None}


@pytest.mark.parametrize("name", ["mondrian", "rothko-s", "optimal", "top-down"])
@settings(
    max_examples=many(1),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=cases())
def test_a_release_with_limits_is_that_of_clamped_numbers(
    databases: tuple[Database, Database], case: tuple[list[int | None], dict[str, Any], dict[str, Any]], name: str
) -> None:
    values, role, limits = case
    if name in ("optimal", "top-down"):
        role = {"hierarchy": {"intervals": [10, 30]}, **role}
    for database in databases:
        table = database.create({"q": "INTEGER", "id": "INTEGER"}, [(v, n) for n, v in enumerate(values)])
        low, high = limits.get("bottom", -(10**6)), limits["top"]
        clamped = [None if v is None else max(low, min(high, v)) for v in values]
        other = database.create({"q": "INTEGER", "id": "INTEGER"}, [(v, n) for n, v in enumerate(clamped)])
        roles = {"q": {**role, **limits}, "id": "insensitive"}
        run = anonymize(database.policy(table, roles, algorithm={"name": name}))
        found = database.sql(f"SELECT * FROM {table}_r")
        expected = database.release(other, {"q": role, "id": "insensitive"}, algorithm={"name": name})
        if role["show"] == "label":
            expected = [(_opened(label, limits), id_) for label, id_ in expected]
        assert sorted(found, key=lambda row: row[-1]) == sorted(expected, key=lambda row: row[-1])
        if name in ("optimal", "top-down"):
            apply(database, run.run, table, f"{table}_again", "error")
            assert database.sql(f"SELECT * FROM {table}_again") == found
            if role["show"] == "label":
                with connect(database.url) as engine, Catalog.open(engine) as catalog:
                    select = rules_select(catalog.store, read_rules(catalog, run.run), catalog.run(run.run))
                assert sorted(database.sql(select), key=repr) == sorted(found, key=repr)


def _opened(label: str, limits: dict[str, Any]) -> str:
    """A label of clamped numbers, with the ends that are open where the limits stand for all beyond them."""
    prefix, body, suffix = "", label, ""
    if label.startswith("{NULL, "):
        prefix, body, suffix = "{NULL, ", label[7:-1], "}"
    elif label.startswith("["):
        prefix, body, suffix = "[", label[1:-1], label[-1]
    found = re.fullmatch(r"(-?[0-9.]+)(?:-(-?[0-9.]+))?", body)
    if found is None:
        return label
    low, high = found[1], found[2] or found[1]
    excluded = suffix == ")"
    bottom, top = limits.get("bottom"), limits["top"]
    opens_low = bottom is not None and float(low) <= bottom and (float(high) > bottom or not excluded)
    opens_high = float(high) > top if excluded else float(high) == top
    opens_high = opens_high and float(low) <= top
    if not (opens_low or opens_high):
        return label
    if opens_high and suffix == ")":
        suffix = "]"
    return f"{prefix or '['}{'*' if opens_low else low}-{'*' if opens_high else high}{suffix or ']'}"


@pytest.mark.parametrize("show", ["label", "bounds"])
@pytest.mark.parametrize("hierarchy", [None, {"intervals": [10, 30]}])
def test_later_releases_keep_the_number_of_a_quantile(
    database: Database, show: str, hierarchy: dict[str, Any] | None
) -> None:
    values = [*range(1, 41), 1000, 2000]
    table = database.create({"q": "INTEGER", "id": "INTEGER"}, [(n, i) for i, n in enumerate(values)])
    role = {"role": "quasi-identifier", "show": show, "bottom": {"quantile": 0.05}, "top": {"quantile": 0.9}}
    if hierarchy is not None:
        role["hierarchy"] = hierarchy
    run = anonymize(database.policy(table, {"q": role, "id": "insensitive"}, ranges="cuts"))
    first = database.sql(f"SELECT * FROM {table}_r")
    wide = database.create({"q": "INTEGER", "id": "INTEGER"}, [(n, i) for i, n in enumerate([*values, *[10**6] * 60])])
    apply(database, run.run, wide, f"{wide}_r", "error")
    assert database.sql(f"SELECT * FROM {wide}_r WHERE id < 42 ORDER BY id") == sorted(first, key=lambda row: row[-1])
    frozen(database, run.run, procedure=hierarchy is None or show != "bounds")  # no SELECT says these
    carry_out(database)
    assert sorted(database.sql(f"SELECT * FROM {table}_r"), key=repr) == sorted(first, key=repr)


# --- what verification finds


@pytest.mark.parametrize("show", ["label", "bounds", "mean", "midpoint"])
def test_a_release_of_numbers_that_were_not_clamped_is_refused(
    database: Database, show: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create({"q": "INTEGER"}, [(n,) for n in INCOMES])
    monkeypatch.setattr(Limits, "coded", lambda _self, _render, value, _column: value)
    monkeypatch.setattr(Limits, "of_whole", lambda _self, number: number)
    with pytest.raises(VerificationError):
        anonymize(database.policy(table, {"q": {"role": "quasi-identifier", "show": show, "bottom": 500, "top": 3500}}))
    assert database.leftovers() == []


def test_an_interval_of_a_limit_that_is_not_open_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create({"q": "INTEGER"}, [(n,) for n in (1010, 1020, 3000, 3100, 4000, 83_456_789)])
    monkeypatch.setattr("sqlanon.encoding.dictionaries.open_groups", lambda *_: ())
    role = {"role": "quasi-identifier", "top": 3500, "hierarchy": {"intervals": [1000]}}
    with pytest.raises(VerificationError):
        anonymize(database.policy(table, {"q": role}))


@pytest.mark.parametrize("wrong", [2999, 5000, None])
def test_a_number_that_is_not_the_quantile_is_refused(
    database: Database, wrong: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create({"q": "INTEGER"}, [(n,) for n in INCOMES])
    number = None if wrong is None else Decimal(wrong)
    monkeypatch.setattr("sqlanon.hierarchies.limits.find_quantile", lambda *_: number)
    with pytest.raises(VerificationError):
        anonymize(database.policy(table, {"q": {"role": "quasi-identifier", "top": {"quantile": 0.5}}}))


@pytest.mark.parametrize("method", ["is_bottom", "is_top"])
def test_an_end_that_is_not_open_is_refused(database: Database, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create({"q": "INTEGER"}, [(n,) for n in INCOMES])
    monkeypatch.setattr(Limits, method, lambda *_: Markup("FALSE"))
    with pytest.raises(VerificationError):
        anonymize(database.policy(table, {"q": {"role": "quasi-identifier", "bottom": 500, "top": 3500}}))


# --- what a draft proposes


@pytest.mark.parametrize("numbers", [["1.7e308", "-1.7e308", "5e-324", "-5e-324"], ["1e400", "-1e400", "1e-400", "0"]])
def test_a_draft_of_the_greatest_and_the_least_numbers(database: Database, numbers: list[str]) -> None:
    """Decimals of PostgreSQL may be beyond doubles."""
    type_ = "DOUBLE PRECISION" if "5e-324" in numbers or database.engine == "duckdb" else "NUMERIC"
    table = database.create({"age": type_, "sex": "TEXT"}, [])
    for number in numbers if type_ == "NUMERIC" else ["1.7e308", "-1.7e308", "5e-324", "-5e-324"]:
        database.sql(f"INSERT INTO {table} SELECT CAST('{number}' AS {type_}), 'f' FROM generate_series(1, 300)")
    with connect(database.url) as engine:
        relation = engine.resolve(Relation.parse(table))
        assert relation is not None
        assert "age:" in propose_policy(profile(engine, relation), database.url, table)


@pytest.mark.parametrize(
    ("values", "proposed"),
    [
        ([*range(1000), 83_456_789], ", top: {quantile: 0.995}}"),
        ([*range(1000), -83_456_789], ", bottom: {quantile: 0.005}}"),
        ([*range(1000)] * 2, "40]}}"),
        ([*range(900), 10**6], "40]}}"),
    ],
)
def test_a_draft_codes_rare_ends(database: Database, values: list[int], proposed: str) -> None:
    table = database.create({"age": "BIGINT", "sex": "TEXT"}, [(n, "mf"[n % 2]) for n in values])
    with connect(database.url) as engine:
        relation = engine.resolve(Relation.parse(table))
        assert relation is not None
        draft = propose_policy(profile(engine, relation), database.url, table)
    (line,) = [line for line in draft.splitlines() if line.startswith("  age:")]
    assert proposed in line
    assert ("span more than the rest" in line) == ("quantile" in line)
    assert "83" not in line
    policy = parse_policy(draft)
    anonymize(policy)
    assert not any("83456789" in str(cell) for row in database.sql(f"SELECT * FROM {table}_released") for cell in row)
