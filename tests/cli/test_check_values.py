"""`check` holds hierarchies against the values of their columns, and lists every problem that a run would find."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.policy.loading import build_policy
from sqlanon.runs.linking import check_run
from tests.cli.support import call_main
from tests.run_support import Database, anonymize

QUASI = {"role": "quasi-identifier"}
COLUMNS = {"age": "INTEGER", "zip": "VARCHAR(5)", "job": "VARCHAR(9)", "weight": "DECIMAL(6,2)", "ward": "VARCHAR(3)"}
ROWS = [
    (20 + n % 9, f"{13000 + n % 7}", ["nurse", "clerk", "o'hara; x", None][n % 4], n % 5 + 0.25, "ab"[n % 2])
    for n in range(40)
]
FIT: dict[str, Any] = {
    "age": QUASI | {"hierarchy": {"intervals": [5, 10]}},
    "zip": QUASI | {"hierarchy": {"mask": "right", "length": 5}},
    "job": QUASI | {"hierarchy": {"mapping": {"nurse": "health", "clerk": "office", "o'hara; x": "office"}}},
    "weight": {"role": "insensitive"},
    "ward": {"role": "sensitive"},
}
LONG = "".join(f"v{number};a;*\n" if number % 2 else f"v{number};a\n" for number in range(60))

WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "incomplete": ({"job": {"mapping": {"nurse": "health"}}}, {}, "lacks 2 of the distinct values"),
    "doubled": (
        {"job": {"csv": 'nurse;a;*\nclerk;b;*\nnurse;b;*\n"o\'hara; x";b;*\n'}},
        {},
        "line 3 .* another path than line 1",
    ),
    "ragged": ({"job": {"csv": "nurse;a;*\nclerk;b\n"}}, {}, "line 2 .* has 1 level"),
    "many wrong lines": ({"job": {"csv": LONG}}, {}, "20 more of its lines are wrong"),
    "empty label": ({"job": {"csv": "nurse;a;*\nclerk;;*\n"}}, {}, "line 2 .* has an empty label"),
    "torn": ({"job": {"csv": 'nurse;a;p;*\nclerk;a;q;*\n"o\'hara; x";b;q;*\n'}}, {}, "1 of level 1 in level 2"),
    "short mask": ({"zip": {"mask": "right", "length": 3}}, {}, "a value has 5 characters"),
    "limits": ({}, {"limits": {"age": [1, 7], "zip": [0, 9]}}, "algorithm.limits.age: its hierarchy has levels 0 to 3"),
    "crossed quantiles": (
        {"age": {"intervals": [5]}},
        {"attributes": {"age": {"bottom": {"quantile": 0.9}, "top": {"quantile": 0.1}}}},
        "its bottom is not below its top",
    ),
}
"""Hierarchies by column, more of the policy, and what is said of them."""


def policy_of(
    database: Database, table: str, hierarchies: Mapping[str, Any], more: Mapping[str, Any], home: Path
) -> dict[str, Any]:
    """Build a policy with other hierarchies than those that fit; texts of `csv` are written as files."""
    attributes = {name: dict(one) for name, one in FIT.items()}
    for name, spec in hierarchies.items():
        if "csv" in spec:
            (home / f"{name}.csv").write_text(spec["csv"])
            spec = {"csv": str(home / f"{name}.csv")}
        attributes[name]["hierarchy"] = spec
    for name, keys in more.get("attributes", {}).items():
        attributes[name] |= keys
    return {
        "source": {"url": database.url, "table": table},
        "release": {"table": f"{table}_r"},
        "attributes": attributes,
        "privacy": [{"model": "k-anonymity", "k": 2}],
        "algorithm": {"name": "optimal"} | ({"limits": more["limits"]} if "limits" in more else {}),
    }


def test_a_check_finds_what_a_run_would_refuse(database: Database, tmp_path: Path) -> None:
    """Each hierarchy that a run refuses is refused by a check, in the words of the run, and what fits passes."""
    table = database.create(COLUMNS, ROWS)
    check_run(build_policy(policy_of(database, table, {}, {}, tmp_path)))
    for name, (hierarchies, more, expected) in WRONG.items():
        policy = build_policy(policy_of(database, table, hierarchies, more, tmp_path))
        with pytest.raises(PolicyError, match=expected) as checked:
            check_run(policy)
        with pytest.raises(PolicyError) as refused:
            anonymize(policy)
        assert set(refused.value.problems) <= set(checked.value.problems), name
    assert database.leftovers() == []


def test_problems_of_all_columns_come_together(database: Database, tmp_path: Path) -> None:
    table = database.create(COLUMNS, ROWS)
    hierarchies = {"job": {"csv": "nurse;a;*\nclerk;b\n"}, "zip": {"mask": "right", "length": 3}}
    document = policy_of(database, table, hierarchies, {"limits": {"age": [0, 5]}}, tmp_path)
    document["attributes"]["nobody"] = {"role": "insensitive"}
    missing: dict[str, Any] = {}
    with pytest.raises(PolicyError) as caught:
        check_run(build_policy(document), tell_missing=missing.__setitem__)
    text = "\n".join(caught.value.problems)
    for part in ("nobody", "line 2", "lacks 1 of the distinct", "a value has 5 characters", "algorithm.limits.age"):
        assert part in text
    assert missing == {"job": ["o'hara; x"]}
    assert "o'hara" not in text


def test_the_terminal_lists_what_a_hierarchy_lacks_and_a_file_completes_it(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = database.create(COLUMNS, ROWS)
    document = policy_of(database, table, {"job": {"csv": "nurse;health;*\n"}}, {}, tmp_path)
    file = tmp_path / "policy.yml"
    file.write_text(json.dumps(document))  # which YAML is too
    code, out, err = call_main(capsys, "check", file)
    assert (code, out) == (2, """The hierarchy of 'job' lacks 'clerk', "o'hara; x"\n""")
    assert "clerk" not in err
    assert "clerk" not in "".join(call_main(capsys, "check", file, "--json")[1:])
    _, listed, _ = call_main(capsys, "hierarchy", "missing", file, "job")
    assert list(csv.reader(listed.splitlines(), delimiter=";")) == [["clerk", "", "*"], ["o'hara; x", "", "*"]]
    (tmp_path / "job.csv").write_text("nurse;health;*\n" + listed.replace(";;", ";office;"))
    assert call_main(capsys, "check", file)[0] == 0
    assert call_main(capsys, "hierarchy", "missing", file, "job")[:2] == (0, "")
    assert "has a mask hierarchy" in call_main(capsys, "hierarchy", "missing", file, "zip")[2]


def test_a_mapping_is_completed_as_a_file_is_and_a_column_that_is_not_there_is_refused(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = database.create(COLUMNS, ROWS)
    document = policy_of(database, table, {"job": {"mapping": {"nurse": ["health"]}}}, {}, tmp_path)
    document["attributes"]["nobody"] = QUASI | {"hierarchy": {"mapping": {"a": ["b"]}}}
    file = tmp_path / "policy.yml"
    file.write_text(json.dumps(document))
    code, listed, _ = call_main(capsys, "hierarchy", "missing", file, "job")
    assert (code, [line[0] for line in csv.reader(listed.splitlines(), delimiter=";")]) == (0, ["clerk", "o'hara; x"])
    for column, words in (("nobody", "nobody"), ("jobb", "'job'")):
        code, listed, told = call_main(capsys, "hierarchy", "missing", file, column)
        assert (code, listed) == (2, "")
        assert words in told


def test_a_check_says_when_a_lattice_is_too_large_to_search(database: Database, tmp_path: Path) -> None:
    columns = {f"q{number}": "VARCHAR(20)" for number in range(6)}
    table = database.create(columns, [("x" * 20,) * 6] * 4)
    document = policy_of(database, table, {}, {}, tmp_path)
    document["attributes"] = dict.fromkeys(columns, QUASI | {"hierarchy": {"mask": "right"}})
    document["algorithm"] = {"name": "incognito"}
    plan, _ = check_run(build_policy(document))
    assert any("--any-size" in one for one in plan.warnings)
    document["algorithm"]["limits"] = {name: [0, 1] for name in columns}
    plan, _ = check_run(build_policy(document))
    assert not any("--any-size" in one for one in plan.warnings)


def test_a_check_counts_people_whom_the_population_lacks(database: Database, tmp_path: Path) -> None:
    table = database.create(COLUMNS, ROWS)
    database.sql(f"CREATE TABLE everybody AS SELECT * FROM {table} WHERE age > 21")
    document = policy_of(database, table, {}, {}, tmp_path)
    document["privacy"] = [{"model": "k-map", "population": "everybody", "k": 2}]
    document["attributes"] |= {"weight": QUASI | {"hierarchy": {"intervals": [1]}}, "job": {"role": "insensitive"}}
    policy = build_policy(document)
    lacking = len({(row[0], row[1], row[3]) for row in ROWS if row[0] <= 21})
    with pytest.raises(PolicyError, match=f"has no row with {lacking} of the combinations"):
        check_run(policy)
    with pytest.raises(PolicyError, match="the population everybody lacks"):
        anonymize(policy)
    database.sql("DROP TABLE everybody")
    database.sql(f"CREATE TABLE everybody AS SELECT * FROM {table}")
    check_run(policy)


def test_a_column_that_can_not_be_coded_hides_no_other_problem(database: Database, tmp_path: Path) -> None:
    """Problems of types, limits, files and populations are listed beside those of values, whatever these are."""
    table = database.create(COLUMNS | {"data": "JSON"}, [(*row, '{"a": 1}') for row in ROWS])
    database.sql(f"CREATE TABLE everybody AS SELECT zip, ward FROM {table}")
    (tmp_path / "latin.csv").write_bytes(b"nurse;\xe4;*\n")
    document = policy_of(database, table, {"zip": {"mask": "right", "length": 3}}, {}, tmp_path)
    document["attributes"]["job"]["hierarchy"] = {"csv": str(tmp_path / "latin.csv")}
    document["attributes"] |= {
        "age": QUASI | {"bottom": {"quantile": 0.9}, "top": {"quantile": 0.1}},
        "ward": QUASI | {"hierarchy": {"suppress": True}, "top": 3},
        "data": QUASI | {"hierarchy": {"suppress": True}},
    }
    document["privacy"] = [{"model": "k-map", "population": "everybody", "k": 2}]
    missing: dict[str, Any] = {}
    with pytest.raises(PolicyError) as caught:
        check_run(build_policy(document), tell_missing=missing.__setitem__)
    text = "\n".join(caught.value.problems)
    for part in (
        "a value has 5 characters",
        "not UTF-8",
        "bottom is not below its top",
        "limit of numbers",
        "cannot be generalized",
    ):
        assert part in text
    assert "is no column of everybody" in text
    assert not missing
    nobody = document | {"attributes": {name: {"role": "insensitive"} for name in document["attributes"]}}
    with pytest.raises(PolicyError, match="nothing to generalize"):
        check_run(build_policy(nobody))


def test_limits_are_held_against_values_without_a_hierarchy_too(database: Database, tmp_path: Path) -> None:
    table = database.create(COLUMNS, ROWS)
    document = policy_of(database, table, {}, {}, tmp_path)
    document["attributes"]["age"] = QUASI | {"bottom": {"quantile": 0.9}, "top": {"quantile": 0.1}}
    document["algorithm"] = {"name": "mondrian"}
    policy = build_policy(document)
    with pytest.raises(PolicyError, match="bottom is not below its top"):
        check_run(policy)
    with pytest.raises(PolicyError, match="bottom is not below its top"):
        anonymize(policy)


def test_a_file_that_the_environment_names_is_read(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIERARCHIES", str(tmp_path))
    (tmp_path / "job.csv").write_text("nurse;a;*\nclerk;b\n")
    document = policy_of(database, database.create(COLUMNS, ROWS), {}, {}, tmp_path)
    document["attributes"]["job"]["hierarchy"] = {"csv": "${HIERARCHIES}/job.csv"}
    with pytest.raises(PolicyError, match=r"line 2 .* has 1 level"):
        check_run(build_policy(document))


def test_a_role_without_temporary_tables_gets_a_check_all_the_same(
    postgres_database: Database, restricted_role: tuple[str, str], tmp_path: Path
) -> None:
    """The warning says what was not looked at; every other problem is found."""
    role, url = restricted_role
    name = urlsplit(url).path.removeprefix("/")
    table = postgres_database.create(COLUMNS, ROWS)
    postgres_database.sql(f"GRANT SELECT ON {table} TO {role}")
    postgres_database.sql(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
    document = policy_of(postgres_database, table, {}, {}, tmp_path)
    document["source"]["url"] = url
    document["release"] = {"file": str(tmp_path / "released.csv")}
    plan, _ = check_run(build_policy(document))
    assert any("No hierarchy was held" in one and "temporary" in one for one in plan.warnings)
    document["attributes"]["zip"]["hierarchy"] = {"date": ["year"]}
    with pytest.raises(PolicyError, match="zip"):
        check_run(build_policy(document))


def ordered(cuts: int) -> dict[str, Any]:
    return {"algorithm": {"name": "ordered-sets", "search": "exact", "cuts": cuts}}


SEARCHES: dict[str, tuple[dict[str, Any], str | None]] = {
    "cuts": (ordered(10), r"there are 21 \(age 8, zip 6, job 3, score 4\)"),
    "skewed cuts": (ordered(4), None),
    "levels": ({"algorithm": {"name": "cell-generalization"}, "levels": range(1, 14)}, "make 38,416 combinations"),
    "few levels": ({"algorithm": {"name": "cell-generalization"}, "levels": range(1, 9)}, None),
    "distinct": ({"privacy": [{"model": "distinct-l-diversity", "attribute": "ward", "l": 3}]}, "Attainable: l: 2"),
    "entropy": ({"privacy": [{"model": "entropy-l-diversity", "attribute": "ward", "l": 2.5}]}, "Attainable"),
    "recursive": (
        {"privacy": [{"model": "recursive-l-diversity", "attribute": "ward", "c": 0.5, "l": 2}]},
        "No release can meet recursive",
    ),
    "alpha": ({"privacy": [{"model": "alpha-k", "attribute": "ward", "alpha": 0.1, "k": 2}]}, "No release can meet"),
    "named": (
        {"privacy": [{"model": "alpha-k", "attribute": "ward", "alpha": 0.1, "k": 2, "values": ["a"]}]},
        "No release can meet",
    ),
    "variance": (
        {"privacy": [{"model": "variance-diversity", "attribute": "weight", "v": 99}], "role": "sensitive"},
        "No release can meet",
    ),
    "possible": ({"privacy": [{"model": "distinct-l-diversity", "attribute": "ward", "l": 2}]}, None),
    "suppressed": (
        {
            "privacy": [{"model": "entropy-l-diversity", "attribute": "ward", "l": 2.0001}],
            "algorithm": {"name": "incognito"},
            "suppression": 0.9,
        },
        None,
    ),
}
"""More of a policy, and what its check says of the search; None for nothing."""


def searched(database: Database, table: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """Build a policy of columns with few values, which are skewed, and with levels of one where these are given."""
    widths = more.get("levels")
    hierarchies = {"hierarchy": {"intervals": [2**one for one in widths]}} if widths else {}
    hierarchies |= {"hierarchy": {"suppress": True}} if "suppression" in more else {}
    return {
        "source": {"url": database.url, "table": table},
        "release": {"table": f"{table}_r"},
        "attributes": {
            "age": QUASI | hierarchies,
            "zip": QUASI | hierarchies,
            "job": QUASI | hierarchies,
            "score": QUASI | hierarchies,
            "weight": {"role": more.get("role", "insensitive")},
            "ward": {"role": "sensitive"},
        },
        "privacy": more.get("privacy", [{"model": "k-anonymity", "k": 2}]),
        **{key: more[key] for key in ("algorithm", "suppression") if key in more},
    }


@pytest.mark.parametrize("name", SEARCHES)
def test_a_check_refuses_what_the_search_would(database: Database, name: str) -> None:
    more, expected = SEARCHES[name]
    columns, rows = COLUMNS | {"score": "BIGINT"}, [(*row, (0 if n % 3 else n)) for n, row in enumerate(ROWS)]
    if "levels" in more:
        columns |= dict.fromkeys(("age", "zip", "job"), "BIGINT")
        rows = [(*[2 ** (n % 14)] * 3, *row[3:5], 2 ** (n % 14)) for n, row in enumerate(rows)]
    table = database.create(columns, [*rows, (*rows[0][:5], None)])
    policy = build_policy(searched(database, table, more))
    if expected is None:
        check_run(policy)
        with contextlib.suppress(ProtectionError):  # which rows and classes decide
            anonymize(policy)
        return
    with pytest.raises(PolicyError, match=expected) as checked:
        check_run(policy)
    with pytest.raises((PolicyError, ProtectionError)) as refused:
        anonymize(policy)
    assert str(refused.value).splitlines() == list(checked.value.problems)


@pytest.mark.parametrize("intervals", [[10], [1e20], [1e-20, 1e15]])
def test_intervals_of_what_is_next_to_zero_pass_a_check_and_a_run(database: Database, intervals: list[float]) -> None:
    table = database.create({"income": "DOUBLE PRECISION"}, [(value,) for value in (5e-324, -5e-324, 0.0) * 4])
    policy = build_policy(
        {
            "source": {"url": database.url, "table": table},
            "release": {"table": f"{table}_r"},
            "attributes": {"income": QUASI | {"hierarchy": {"intervals": intervals}}},
            "privacy": [{"model": "k-anonymity", "k": 2}],
            "algorithm": {"name": "optimal"},
        }
    )
    check_run(policy)
    anonymize(policy)
