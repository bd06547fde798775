"""Procedures of jobs: they give what applying the rules gives, refuse what they can't do, and what they leave alone."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import (
    ConflictError,
    PolicyError,
    ProtectionError,
    SqlanonError,
    VerificationError,
)
from sqlanon.models import Groups, KAnonymity
from sqlanon.sql import Relation, Renderer, Statement
from sqlanon.values.digest import table_digest
from tests.jobs_support import (
    COLUMNS,
    ROLES,
    K,
    carry_out,
    frozen,
    fulldomain,
    released,
    replaced,
    runs,
    simple,
    table,
    tamper,
)
from tests.rules_support import apply
from tests.run_support import Database, anonymize, open_database, quoted

pytestmark = pytest.mark.slow

NESTED = {
    "n": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
    "d": {"role": "quasi-identifier", "hierarchy": {"date": ["week"]}},
    "t": {"role": "quasi-identifier", "hierarchy": {"mapping": {"a": "1", "b": "1", "C": "2"}, "unknown": "?"}},
}
MODELS: dict[str, list[dict[str, Any]]] = {
    "several attributes": [
        K,
        {"model": "t-closeness", "attribute": "s", "t": 0.4},
        {"model": "distinct-l-diversity", "attribute": "x", "l": 2},
    ],
    "ordered": [{"model": "t-closeness", "attribute": "x", "distance": "ordered", "t": 0.3}],
    "divergence and variance": [
        {"model": "t-closeness", "attribute": "s", "distance": "kl", "t": 0.5},
        {"model": "variance-diversity", "attribute": "x", "v": 2.0},
    ],
    "entropy and frequencies": [
        {"model": "entropy-l-diversity", "attribute": "s", "l": 1.5},
        {"model": "recursive-l-diversity", "attribute": "x", "c": 2, "l": 2},
    ],
    "shares": [
        {"model": "beta-likeness", "attribute": "s", "beta": 1.2},
        {"model": "delta-disclosure", "attribute": "s", "delta": 2.0},
        {"model": "alpha-k", "attribute": "s", "alpha": 0.7, "k": 3, "values": ["a"]},
    ],
}


# --- the procedure, and applying the rules


@pytest.mark.parametrize("models", MODELS)
def test_a_procedure_releases_what_applying_the_rules_does(postgres_url: str, models: str) -> None:
    with open_database(postgres_url) as database:
        name = database.create(COLUMNS, table(1, 200, 0))
        roles = ROLES | (NESTED if models == "ordered" else {})
        run = anonymize(database.policy(name, roles, privacy=MODELS[models], digest="run")).run
        frozen(database, run, on_violation="suppress", budget=0.9)
        for seed, rows, wide in ((2, 90, 3), (3, 250, 3), (4, 300, 0)):  # the last without values unknown to the rules
            replaced(database, name, table(seed, rows, wide))
            try:
                applied = apply(database, run, name, f"{name}_{seed}", replace=True, budget=0.9).as_json()
            except ProtectionError:
                with pytest.raises(ProtectionError):
                    carry_out(database)
                continue
            result = carry_out(database)
            assert database.columns(f"{name}_r") == database.columns(f"{name}_{seed}")
            assert released(database, f"{name}_r") == released(database, f"{name}_{seed}")
            assert result["risk"] == applied["risk"]
            same = {"table": None}
            assert {**result["release"], **same} == {**applied["release"], **same}
            assert [m["worst"] for m in result["models"]] == pytest.approx([m["worst"] for m in applied["models"]])
            assert result["quasi_identifiers"] == [unknown_values(one) for one in applied["quasi_identifiers"]]
            assert result["metrics"]["discernibility"] == applied["metrics"]["discernibility"]
            assert digest_of(database, result["run"]) == digest_of(database, applied["run"])
        assert database.leftovers() == []


def unknown_values(described: dict[str, Any]) -> dict[str, Any]:
    """An attribute as a procedure describes it, which does not count values."""
    return {**described, "values": None}


def digest_of(database: Database, run: str) -> str | None:
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        (release,) = catalog.releases(run)
        assert release.content_digest == table_digest(engine, Relation.parse(release.relation))
        return release.content_digest


# --- the procedure alone


@pytest.mark.parametrize(
    ("more", "wanted", "problem"),
    [
        ({"suppressed": "star"}, {"on_violation": "suppress", "budget": 0.1}, "suppressed: star"),
        ({"subject": "x", "attributes": {"x": "identifier"}}, {}, "not the persons of 'x'"),
        (
            {"attributes": {"n": {"role": "quasi-identifier", "hierarchy": {"intervals": [5]}, "show": "bounds"}}},
            {},
            "one SELECT",
        ),
    ],
)
def test_what_a_procedure_cannot_do_is_refused(
    postgres_url: str, more: dict[str, Any], wanted: dict[str, Any], problem: str
) -> None:
    with open_database(postgres_url) as database:
        name = database.create(COLUMNS, table(1, 120, 0))
        roles = {**ROLES, **more.pop("attributes", {})}
        run = anonymize(database.policy(name, roles, privacy=[K], **more)).run
        with pytest.raises(PolicyError, match=problem) as refused:
            frozen(database, run, **wanted)
        assert "--no-procedure" in str(refused.value)
        assert frozen(database, run, procedure=False, **wanted).routine is None
        assert carry_out(database)["published"]


def test_a_procedure_keeps_what_belongs_to_a_release(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        database.sql(f"CREATE VIEW seen AS SELECT count(*) FROM {name}_r")
        database.sql("CREATE ROLE reader_of_jobs")
        database.sql(f"GRANT SELECT ON {name}_r TO reader_of_jobs")
        database.sql("CALL sqlanon.job_nightly()")
        database.insert(name, table(1, 120, 0))
        database.sql("CALL sqlanon.job_nightly()")  # once more in the same session
        assert database.sql("SELECT * FROM seen") == [(240,)]
        assert database.sql(f"SELECT has_table_privilege('reader_of_jobs', '{name}_r', 'SELECT')") == [(True,)]
        database.sql(f"DROP TABLE {name}_r CASCADE")
        assert carry_out(database)["release"]["rows"] == 240
        database.sql("DROP OWNED BY reader_of_jobs; DROP ROLE reader_of_jobs")


@pytest.mark.parametrize("begin", ["BEGIN", "SET default_transaction_read_only = on"])
def test_a_call_that_cannot_begin_holds_no_lock(postgres_url: str, begin: str) -> None:
    with open_database(postgres_url) as database, open_database(postgres_url) as other:
        _, run = simple(database)
        frozen(database, run)
        other.sql(begin)
        with pytest.raises((psycopg.errors.InvalidTransactionTermination, psycopg.errors.ReadOnlySqlTransaction)):
            other.sql("CALL sqlanon.job_nightly()")
        other.sql("ROLLBACK")
        assert carry_out(database)["published"]
        assert len(runs(database)) == 1


def test_a_column_that_came_or_changed_ends_a_job(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        database.sql(f"ALTER TABLE {name} ADD COLUMN diagnosis TEXT")
        with pytest.raises(PolicyError, match="columns"):
            carry_out(database)


def test_odd_names_are_names(postgres_url: str) -> None:
    odd = """'$sqlanon$ %s {{ x }} -- \\ ;"""
    names = {
        "n": "sqlanon_class",
        "t": f'q0"{odd}',
        "d": "class",
        "z": f"ä{odd}",
        "s": "sqlanon_rows",
        "x": "sqlanon_run",
    }
    columns = {names[name]: type_ for name, type_ in COLUMNS.items()}
    roles = {names[name]: role for name, role in ROLES.items()}
    with open_database(postgres_url) as database:
        name = database.create(columns, table(1, 120, 0), quoted(f"T {odd}"))
        policy = database.policy(name, roles, privacy=[K], release={"table": quoted(f"R {odd}")})
        frozen(database, anonymize(policy).run, on_violation="suppress", budget=0.5)
        before = released(database, quoted(f"R {odd}"))
        assert carry_out(database)["release"]["rows"] == len(before) == 120


def test_triggers_may_not_alter_rows(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        database.sql(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.s := 'q'; RETURN NEW; END $$"
        )
        database.sql(f"CREATE TRIGGER spoil BEFORE INSERT ON {name}_r FOR EACH ROW EXECUTE FUNCTION spoil()")
        with pytest.raises(ConflictError, match="altered the rows"):
            carry_out(database)


ALTERED = {
    "a trigger that drops equal rows": (
        "CREATE FUNCTION thin() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF EXISTS (SELECT 1 FROM {release} AS r WHERE CAST((r.*) AS TEXT) = CAST((NEW.*) AS TEXT)) THEN RETURN NULL;"
        " END IF; RETURN NEW; END $$",
        "CREATE TRIGGER thin BEFORE INSERT ON {release} FOR EACH ROW EXECUTE FUNCTION thin()",
    ),
    "a trigger that doubles rows": (
        "CREATE FUNCTION double() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO {release} SELECT * FROM {release} LIMIT 1; RETURN NULL; END $$",
        "CREATE TRIGGER double AFTER INSERT ON {release} WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION double()",
    ),
    "a rule that drops rows": ("CREATE RULE thin AS ON INSERT TO {release} WHERE NEW.s = 'a' DO INSTEAD NOTHING",),
    "a rule that keeps old rows": ("CREATE RULE thin AS ON DELETE TO {release} DO INSTEAD NOTHING",),
}


@pytest.mark.parametrize("statements", ALTERED.values(), ids=ALTERED)
def test_a_release_has_all_rows_and_no_other(postgres_url: str, statements: tuple[str, ...]) -> None:
    """Equal rows as often as they were staged, whatever the release's triggers and rules do."""
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        database.insert(name, table(1, 3, 0) * 2)
        before = released(database, f"{name}_r")
        for statement in statements:
            database.sql(statement.format(release=f"{name}_r"))
        with pytest.raises(ConflictError, match="altered the rows"):
            carry_out(database)
        assert released(database, f"{name}_r") == before


def test_more_rows_than_a_procedure_is_made_for_end_it(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.jobs.procedure._LEAST_ROWS", 1)
    monkeypatch.setattr("sqlanon.jobs.procedure._GROWTH", 1)
    with open_database(postgres_url) as database:
        name, run = simple(database)
        frozen(database, run)
        assert carry_out(database)["release"]["rows"] == 120
        database.insert(name, table(1, 1, 0))
        with pytest.raises(PolicyError, match="holds more than 120 rows, which job nightly was not made for"):
            carry_out(database)
        assert len(released(database, f"{name}_r")) == 120


RECODINGS = {
    "rows are lost": "SELECT * FROM ({recoding}) AS x LIMIT 100",
    "rows are doubled": "SELECT * FROM ({recoding}) AS x UNION ALL (SELECT * FROM ({recoding}) AS y LIMIT 20)",
}


@pytest.mark.parametrize("change", RECODINGS.values(), ids=RECODINGS)
@pytest.mark.parametrize("staging", ["rules", "addresses", "rows"])
def test_a_recoding_that_loses_or_doubles_rows_ends_a_job(postgres_url: str, staging: str, change: str) -> None:
    with open_database(postgres_url) as database:
        name, run = simple(database) if staging == "rules" else fulldomain(database)
        frozen(database, run)
        before = released(database, f"{name}_r")
        column = "assigning"
        if staging == "rows":
            database.sql(f"CREATE TABLE {name}_child () INHERITS ({name})")
            column = "recoding"
        ((recoding,),) = database.sql(f"SELECT {column} FROM sqlanon.jobs")
        changed = change.format(recoding=recoding).replace("'", "''")
        tamper(database, f"{column} = '{changed}'")
        with pytest.raises(VerificationError, match="lost or doubled rows"):
            carry_out(database)
        assert released(database, f"{name}_r") == before


@pytest.mark.parametrize(
    "select", ["x.violates FROM {own} AS x WHERE x.measure > 40", "NULL::BOOLEAN AS violates FROM {own} AS x"]
)
def test_classes_that_a_model_does_not_judge_end_a_job(
    postgres_url: str, select: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count as violations: the procedure has no other opinion than the model's SELECT."""
    measure = KAnonymity.measure

    def spoilt(self: KAnonymity, render: Renderer, groups: Groups) -> Statement:
        own = f"({measure(self, render, groups)})"
        return Statement("test", f"SELECT x.class, x.measure, {select.format(own=own)}")

    with open_database(postgres_url) as database:
        name, run = simple(database)
        before = released(database, f"{name}_r")
        monkeypatch.setattr(KAnonymity, "measure", spoilt)
        frozen(database, run)
        with pytest.raises(ProtectionError, match="classes violate it; nothing was published"):
            carry_out(database)
        assert released(database, f"{name}_r") == before


def test_neither_errors_nor_procedures_tell_values(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        database.sql("CREATE TABLE raw (n TEXT, s TEXT)")
        database.sql("INSERT INTO raw SELECT CAST(776600 + i % 40 AS TEXT), 'a' FROM generate_series(1, 400) AS i")
        database.sql("CREATE VIEW people AS SELECT CAST(n AS INTEGER) AS n, s FROM raw")
        run = anonymize(database.policy("people", {"n": "quasi-identifier", "s": "sensitive"})).run
        frozen(database, run)
        assert carry_out(database)["published"]
        ((text,),) = database.sql("SELECT prosrc FROM pg_proc WHERE proname = 'job_nightly'")
        assert "7766" not in text
        database.sql("INSERT INTO raw VALUES ('CANARY', 'a')")
        with pytest.raises(SqlanonError, match="SQLSTATE 22P02") as failed:
            carry_out(database)
        with pytest.raises(psycopg.Error) as seen:
            database.sql("CALL sqlanon.job_nightly()")
        told = [str(failed.value), str(seen.value), *(str(run.error_message) for run in runs(database))]
        assert not any("CANARY" in text for text in told)
        assert [run.status for run in runs(database)] == ["failed", "failed", "published"]


@pytest.mark.parametrize(
    "reading", ["to_tsquery('simple', n)", "CAST(n AS REGCLASS)", "CAST(n AS REGTYPE)", "date_trunc(n, now())"]
)
def test_errors_that_speak_of_names_may_tell_values_too(postgres_url: str, reading: str) -> None:
    with open_database(postgres_url) as database:
        database.sql("CREATE TABLE raw (n TEXT, age INTEGER, s TEXT)")
        database.sql("INSERT INTO raw SELECT NULL, i % 40, 'a' FROM generate_series(1, 400) AS i")
        database.sql(f"CREATE VIEW people AS SELECT age, CAST({reading} AS TEXT) AS t, s FROM raw")
        roles = {"age": "quasi-identifier", "t": "insensitive", "s": "sensitive"}
        policy = database.policy("people", roles)
        frozen(database, anonymize(policy).run)
        assert carry_out(database)["published"]
        database.sql("UPDATE raw SET n = 'the & (canary' WHERE age = 7")
        failures = []
        for work in (lambda: carry_out(database), lambda: anonymize(policy, replace=True)):
            with pytest.raises(SqlanonError, match="SQLSTATE") as failed:
                work()
            failures.append(str(failed.value))
        assert not any("canary" in text for text in [*failures, *(str(run.error_message) for run in runs(database))])


DIVERSE = {"model": "distinct-l-diversity", "attribute": "x", "l": 2}


def entered(database: Database) -> str:
    """A run whose release is entered in an account of its people."""
    name = database.create(COLUMNS | {"who": "INTEGER"}, [(*row, n) for n, row in enumerate(table(1, 120, 0))])
    more = {"subject": "who", "history": {"mode": "refresh"}}
    return anonymize(database.policy(name, ROLES | {"who": "identifier"}, privacy=[K, DIVERSE], **more)).run


@pytest.mark.parametrize("enters", [False, True])
def test_the_text_of_a_procedure_reads_as_one(postgres_url: str, enters: bool) -> None:
    """Every line lies within its block, and what publishes rows is there once, for both ways of publishing."""
    with open_database(postgres_url) as database:
        run = entered(database) if enters else simple(database)[1]
        job = frozen(database, run, on_violation="suppress", budget=0.1)
        ((body,),) = database.sql(f"SELECT prosrc FROM pg_proc WHERE oid = CAST(to_regproc('{job.routine}') AS OID)")
    outer = {line.split()[0] for line in body.splitlines() if line and not line.startswith("    ")}
    assert outer == {"--", "#variable_conflict", "DECLARE", "BEGIN", "END"}
    assert not [line for line in body.splitlines() if line.lstrip().startswith(",")]
    assert ("sqlanon_account" in body) is enters
    assert max(map(len, body.splitlines())) <= 140
    for once in (
        *(['DELETE FROM "sqlanon"."account_persons"', 'INSERT INTO "sqlanon"."account_releases"'] if enters else []),
        "DELETE FROM ONLY",
        "can''t be replaced: foreign keys",
        "pg_publication_namespace",
        "'total', extract",
    ):
        assert body.count(once) == 1
