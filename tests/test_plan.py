"""Resolving a policy against a live table, on both engines: every problem at once, and what is worth a warning."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.errors import PolicyError
from sqlanon.plan.plan import Plan, resolve
from sqlanon.policy import ReleaseSection, Role, Show
from sqlanon.sql import Relation
from tests.plan_support import (
    ATTRIBUTES,
    COLUMNS,
    make_table,
    one_problem,
    policy_with,
    problems,
    sql,
    warnings,
)

pytestmark = pytest.mark.slow


def test_a_right_policy_gives_a_plan(engine: Engine) -> None:
    make_table(engine)
    plan = resolve(policy_with(), engine)
    assert isinstance(plan, Plan)
    assert plan.source == engine.resolve(Relation("patients"))
    assert plan.release == plan.source.sibling("patients_released")
    assert plan.rows == 100
    assert plan.identifiers == ("ssn",)
    assert [a.name for a in plan.attributes] == ["age", "zipcode", "admitted", "income", "disease", "note_id"]
    assert [a.name for a in plan.quasi_identifiers] == ["age", "zipcode", "admitted", "income"]
    assert [a.name for a in plan.kept] == ["disease", "note_id"]
    assert plan.attribute("income").show is Show.BOUNDS
    assert plan.attribute("income").column.kind is Kind.DECIMAL
    assert plan.attribute("disease").role is Role.SENSITIVE


def test_attributes_follow_the_table_not_the_policy(engine: Engine) -> None:
    make_table(engine)
    turned = dict(reversed(ATTRIBUTES.items()))
    data = policy_with().model_copy(update={"attributes": {n: policy_with().attributes[n] for n in turned}})
    assert [a.name for a in resolve(data, engine).attributes][:2] == ["age", "zipcode"]


def test_planning_changes_nothing_and_asks_little(engine: Engine) -> None:
    make_table(engine)
    before = engine.relations()
    scans: list[str] = []
    engine.listener = lambda statement, _seconds, _rows: scans.append(statement.name)
    resolve(policy_with(), engine)
    engine.listener = None
    assert engine.relations() == before
    assert scans.count("measure_source") == 1
    assert scans.count("plan/measure_attributes") == 1
    assert len(scans) <= 18


def test_an_unknown_table_offers_the_nearest(engine: Engine) -> None:
    make_table(engine)
    problem = one_problem(engine, source={"url": "duckdb:///x.duckdb", "table": "pateints"})
    assert "there is no table 'pateints'" in problem
    assert "did you mean 'patients'" in problem
    found = problems(engine, source={"url": "u", "table": "main.x"}, release={"table": "nowhere.r"})
    assert [problem.split(":")[0] for problem in found] == ["source.table", "release.table"]


def test_all_problems_come_at_once(engine: Engine) -> None:
    make_table(engine)
    found = problems(
        engine,
        attributes={
            "note_id": None,
            "disease": None,
            "agee": {"role": "identifier"},
            "desease": {"role": "sensitive"},
            "ssn": {"role": "quasi-identifier", "hierarchy": {"date": ["year"]}, "show": "mean"},
            "zipcode": {"role": "quasi-identifier", "hierarchy": {"intervals": [5]}},
        },
        privacy=[
            {"model": "k-anonymity", "k": 101},
            {"model": "variance-diversity", "attribute": "desease", "v": 1},
        ],
        release={"table": "nowhere.r"},
    )
    text = "\n".join(found)
    assert "attributes.agee: " in text
    assert "did you mean 'age'?" in text
    assert "did you mean 'disease'?" in text
    assert "columns without a role: 'disease', 'note_id'" in text
    assert "sqlanon init" in text
    assert "k is 101, but" in text
    assert "Hierarchy of column 'ssn': date needs a date" in text
    assert "attributes.ssn: show: mean needs numbers, and" in text
    assert "intervals need a numeric column" in text
    assert "release.table: " in text
    assert len(found) == 9 - 1


def test_sensitive_attributes_must_suit_their_models(engine: Engine) -> None:
    make_table(engine)
    privacy = [
        {"model": "variance-diversity", "attribute": "disease", "v": 1},
        {"model": "t-closeness", "attribute": "disease", "distance": "ordered", "t": 0.5},
        {"model": "t-closeness", "attribute": "disease", "distance": "hierarchical", "t": 0.5},
    ]
    found = problems(engine, privacy=privacy)
    assert [problem.split(":")[0] for problem in found] == [
        "privacy[0] (variance-diversity)",
        "privacy[1] (t-closeness)",
        "privacy[2] (t-closeness)",
    ]
    disease = {"role": "sensitive", "hierarchy": {"mapping": {f"d{i}": "all" for i in range(5)}}}
    plan = resolve(policy_with(privacy=privacy[2:], attributes={"disease": disease}), engine)
    assert plan.attribute("disease").hierarchy is not None


@pytest.mark.parametrize(
    ("rows", "k", "words"), [(0, 1, "holds no rows"), (3, 4, "k is 4, but"), (1, 2, "holds one row")]
)
def test_too_few_rows(engine: Engine, rows: int, k: int, words: str) -> None:
    make_table(engine, rows)
    assert words in one_problem(engine, privacy=[{"model": "k-anonymity", "k": k}])


def test_one_row_with_k_one_is_a_plan_with_a_warning(engine: Engine) -> None:
    make_table(engine, 1)
    assert "k = 1 protects nobody" in warnings(engine, privacy=[{"model": "k-anonymity", "k": 1}])


def test_a_policy_needs_a_quasi_identifier(engine: Engine) -> None:
    make_table(engine)
    insensitive = {name: {"role": "insensitive"} for name in ("age", "zipcode", "admitted", "income")}
    assert "No attribute has role quasi-identifier" in one_problem(engine, attributes=insensitive)


def test_nulls_can_be_refused(engine: Engine) -> None:
    make_table(engine)
    sql(engine, "UPDATE patients SET disease = NULL, age = NULL WHERE note_id <= 7")
    assert resolve(policy_with(), engine).rows == 100
    refused = {
        "disease": {"role": "sensitive", "nulls": "refuse"},
        "income": {**ATTRIBUTES["income"], "nulls": "refuse"},
    }
    assert one_problem(engine, attributes=refused).startswith("attributes.disease: 7 rows hold NULL")


def test_a_type_that_cannot_be_generalized(engine: Engine) -> None:
    make_table(engine, columns={**COLUMNS, "tags": ("INTEGER[]", "NULL")})
    problem = one_problem(engine, attributes={"tags": {"role": "quasi-identifier"}})
    assert problem.startswith("attributes.tags: values of type")
    assert "use a view with a row for each element" in problem
    assert (
        resolve(policy_with(attributes={"tags": {"role": "insensitive"}}), engine).attribute("tags").role
        is Role.INSENSITIVE
    )


def test_the_remedy_fits_the_source(tmp_path: Path) -> None:
    """Of a file nobody makes a view."""
    file = tmp_path / "in.parquet"
    with connect("duckdb:///:memory:") as engine:
        make_table(engine, columns={**COLUMNS, "tags": ("INTEGER[]", "NULL")})
        sql(engine, f"COPY patients TO '{file}'")
        places = {"source": {"file": str(file)}, "release": {"file": str(tmp_path / "out.csv")}}
        problem = one_problem(engine, attributes={"tags": {"role": "quasi-identifier"}}, **places)
    assert "cannot be generalized; write a row for each element into the file" in problem


def test_kept_columns_may_have_any_type(engine: Engine) -> None:
    make_table(engine, columns={**COLUMNS, "doc": ("JSON", "NULL")})
    sql(engine, "UPDATE patients SET doc = '{\"a\": 1}'")
    assert resolve(policy_with(attributes={"doc": {"role": "sensitive", "nulls": "refuse"}}), engine).rows == 100


def test_labels_only_hierarchies_have_no_bounds(engine: Engine) -> None:
    make_table(engine)
    for show, hierarchy in itertools.product(
        ["midpoint", "range", "bounds"], [{"mask": "left"}, "suppress", {"mapping": {"21": "x"}}]
    ):
        age = {"role": "quasi-identifier", "hierarchy": hierarchy, "show": show}
        assert "labels but no bounds" in "\n".join(problems(engine, attributes={"age": age}))


def test_ranges_are_postgresql_only(engine: Engine, tmp_path: Path) -> None:
    make_table(engine)
    policy = policy_with(attributes={"age": {"role": "quasi-identifier", "show": "range"}})
    if engine.name == "postgres":
        assert resolve(policy, engine).attribute("age").show is Show.RANGE
        file = policy.model_copy(update={"release": ReleaseSection(file=str(tmp_path / "out.csv"))})
        with pytest.raises(PolicyError, match="range is PostgreSQL's"):
            resolve(file, engine)
    else:
        with pytest.raises(PolicyError, match="range is PostgreSQL's"):
            resolve(policy, engine)


def test_bounds_must_not_collide(engine: Engine) -> None:
    make_table(engine, columns={**COLUMNS, "income_min": ("INTEGER", "1")})
    problem = one_problem(engine, attributes={"income_min": {"role": "insensitive"}})
    assert "two columns 'income_min'" in problem
    assert resolve(policy_with(attributes={"income_min": {"role": "identifier"}}), engine).rows == 100


def test_names_of_63_bytes_have_no_room_for_bounds_on_postgresql(engine: Engine) -> None:
    name = "ä" * 31
    make_table(engine, columns={**COLUMNS, f'"{name}"': ("INTEGER", "1")})
    policy = policy_with(attributes={name: {"role": "quasi-identifier", "show": "bounds"}})
    if engine.name == "postgres":
        with pytest.raises(PolicyError, match="longer than 63 bytes"):
            resolve(policy, engine)
    else:
        assert resolve(policy, engine).attribute(name).name == name


ODD = ['a"b', "a.b", "a b", "Select", "50%", ":x", "{{ x }}", "%s", "ä😀", "a''b", "x" * 63]


def test_odd_names(engine: Engine) -> None:
    for name in ODD:
        quoted = '"' + name.replace('"', '""') + '"'
        make_table(engine, name=quoted, columns={**COLUMNS, quoted: ("VARCHAR", "'v' || i")})
        policy = policy_with(
            source={"url": "u", "table": quoted},
            attributes={name: {"role": "sensitive", "nulls": "refuse"}},
            release={"table": '"Ödd.""r"'},
        )
        plan = resolve(policy, engine)
        assert (plan.source.name, plan.release.name) == (name, 'Ödd."r')
        assert any(name in warning for warning in plan.warnings)


def test_columns_that_differ_only_in_case(engine: Engine) -> None:
    if engine.name == "duckdb":
        pytest.skip("DuckDB has no such columns")
    make_table(engine, columns={**COLUMNS, '"Age"': ("INTEGER", "1")})
    more = {"Age": {"role": "insensitive"}}
    assert resolve(policy_with(attributes=more), engine).attribute("Age").role is Role.INSENSITIVE
    problem = one_problem(engine, attributes=more, release={"url": "duckdb:///other.duckdb", "table": "r"})
    assert "differ only in case" in problem


def test_a_release_is_not_its_source(engine: Engine) -> None:
    make_table(engine)
    assert "overwrite its source" in one_problem(engine, release={"table": "patients"}, replace=True)


def test_a_release_is_not_what_its_source_reads(engine: Engine) -> None:
    make_table(engine)
    sql(engine, "CREATE SCHEMA s")
    sql(engine, 'CREATE VIEW s."Seen.%" AS SELECT * FROM patients WHERE age > 0')
    sql(engine, 'CREATE VIEW twice AS SELECT * FROM s."Seen.%"')
    sql(engine, "CREATE TABLE other AS SELECT * FROM patients")
    source = {"url": "u", "table": "twice"}
    assert "overwrite its source" in one_problem(engine, source=source, release={"table": "patients"}, replace=True)
    release = resolve(policy_with(source=source, release={"table": "other"}), engine, replace=True).release
    assert release.name == "other"


def test_a_release_is_not_its_source_by_another_url(database_url: str) -> None:
    with contextlib.closing(connect(database_url)) as engine, contextlib.closing(connect(database_url)) as target:
        make_table(engine)
        policy = policy_with(release={"url": "another-spelling", "table": "patients"})
        with pytest.raises(PolicyError, match="overwrite its source"):
            resolve(policy, engine, replace=True, release_engine=target)


def test_an_existing_release_needs_leave(engine: Engine) -> None:
    make_table(engine)
    sql(engine, "CREATE TABLE patients_released (x INTEGER)")
    assert "--replace" in one_problem(engine)
    assert resolve(policy_with(), engine, replace=True).release == engine.resolve(Relation("patients_released"))


def test_a_view_is_a_source_but_no_release(engine: Engine) -> None:
    make_table(engine)
    sql(engine, "CREATE VIEW seen AS SELECT * FROM patients")
    assert resolve(policy_with(source={"url": "u", "table": "seen"}), engine).source.name == "seen"
    assert "is a view" in one_problem(engine, release={"table": "seen"}, replace=True)


def test_the_release_needs_its_schema(engine: Engine) -> None:
    make_table(engine)
    assert "schema" in one_problem(engine, release={"table": "nowhere.r"})


def test_integers_too_wide_for_parquet_are_found_by_the_plan(tmp_path: Path) -> None:
    with connect("duckdb:///:memory:") as engine:
        make_table(engine, columns={**COLUMNS, "note_id": ("HUGEINT", "i")})
        assert '"note_id"' in one_problem(engine, release={"file": str(tmp_path / "out.parquet")})
        resolve(policy_with(release={"file": str(tmp_path / "out.csv")}), engine)


def test_file_releases(engine: Engine, tmp_path: Path) -> None:
    make_table(engine)
    plan = resolve(policy_with(release={"file": str(tmp_path / "out.csv")}), engine)
    assert plan.release == Relation(str(tmp_path / "out.csv"))
    assert "release.file: " in one_problem(engine, release={"file": str(tmp_path / "none" / "out.csv")})
    assert "release.file: " in one_problem(engine, release={"file": str(tmp_path / "out.xlsx")})
    (tmp_path / "out.csv").write_text("old")
    assert "--replace" in one_problem(engine, release={"file": str(tmp_path / "out.csv")})


@pytest.mark.parametrize("name", ["in.csv", "in.parquet"])
def test_a_file_is_a_source_on_duckdb_only(engine: Engine, tmp_path: Path, name: str) -> None:
    make_table(engine)
    places = {"source": {"file": str(tmp_path / name)}, "release": {"file": str(tmp_path / "out.csv")}}
    if engine.name != "duckdb":
        assert "DuckDB reads files" in one_problem(engine, **places)
        return
    sql(engine, f"COPY patients TO '{tmp_path / name}'")
    plan = resolve(policy_with(**places), engine)
    assert (plan.rows, plan.release) == (100, Relation(str(tmp_path / "out.csv")))
    assert engine.resolve(plan.source) == plan.source
    assert "overwrite its source" in one_problem(engine, **{**places, "release": places["source"]}, replace=True)
    with pytest.raises(PolicyError, match="no file"):
        resolve(policy_with(**{**places, "source": {"file": str(tmp_path / "none.csv")}}), engine)


def test_levels_that_do_not_nest_are_pointed_out(engine: Engine) -> None:
    make_table(engine)
    income = {"role": "quasi-identifier", "hierarchy": {"intervals": [0.1, 0.3, 5, 12]}}
    found = warnings(engine, attributes={"income": income})
    assert "intervals of 12 do not consist of intervals of 5" in found
    assert "0.3 do not" not in found
    admitted = {"role": "quasi-identifier", "hierarchy": {"date": ["day", "week", "month"]}}
    assert "a week can lie in two months" in one_problem(engine, attributes={"admitted": admitted})


def test_a_hierarchy_file_must_be_there(engine: Engine, tmp_path: Path) -> None:
    make_table(engine)
    age = {"role": "quasi-identifier", "hierarchy": {"csv": str(tmp_path / "age.csv")}}
    assert "there is no file" in one_problem(engine, attributes={"age": age})
    (tmp_path / "age.csv").write_text("21;*\n")
    assert resolve(policy_with(attributes={"age": age}), engine).attribute("age").hierarchy is not None
