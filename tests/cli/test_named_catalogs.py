"""A catalog that a policy names is used, or the command ends with 4; what others hold of a source binds too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqlanon.cli.commands import program
from sqlanon.cli.reference import commands as all_commands
from sqlanon.policy.grants import grant_script
from sqlanon.policy.loading import build_policy
from sqlanon.support.roles import Roles
from tests.cli.support import call, execute, make_patients, query
from tests.postgres_server import PostgresServer
from tests.roles_support import Place, open_place
from tests.run_support import quoted

pytestmark = pytest.mark.slow

FIRST = "count(*) where age <= 40"
SECOND = "count(*) where age <= 41"  # with the first: the five persons of 41
COUNTED: dict[str, Any] = {
    "attributes": {
        "age": {"role": "quasi-identifier"},
        "sex": {"role": "quasi-identifier"},
        "ward": {"role": "insensitive"},
    },
    "privacy": [{"model": "k-anonymity", "k": 10}],
}
PRIVATE: dict[str, Any] = {
    "attributes": {
        "age": {"role": "identifier"},
        "sex": {"role": "quasi-identifier", "values": ["F", "M"]},
        "ward": {"role": "identifier"},
    },
    "privacy": [{"model": "differential-privacy", "epsilon": 1, "unit": "row"}],
    "algorithm": {"name": "contingency"},
    "budget": {"ledger": "people"},
}
COMMANDS: list[tuple[str, ...]] = [
    ("run", "POLICY", "-q"),
    ("run", "POLICY", "--dry-run"),
    ("check", "POLICY"),
    ("verify", "POLICY"),
    ("ask", "POLICY", FIRST),
    ("apply", "latest", "--to", "counted", "--policy", "POLICY", "-q"),
    ("sweep", "POLICY", "--k", "10,20"),
    ("rules", "latest", "--policy", "POLICY"),
    ("export", "latest", "--as", "sql", "--policy", "POLICY"),
    ("freeze", "latest", "--name", "nightly", "--policy", "POLICY"),
    ("job", "run", "nightly", "--policy", "POLICY"),
    ("jobs", "--policy", "POLICY"),
    ("job", "show", "nightly", "--policy", "POLICY"),
    ("schedule", "nightly", "--at", "0 3 * * *", "--policy", "POLICY"),
    ("unschedule", "nightly", "--policy", "POLICY"),
    ("runs", "--policy", "POLICY"),
    ("runs", "--watch", "--policy", "POLICY"),
    ("show", "latest", "--policy", "POLICY"),
    ("report", "latest", "--policy", "POLICY"),
    ("record", "latest", "--policy", "POLICY"),
    ("diff", "1", "2", "--policy", "POLICY"),
    ("cancel", "latest", "--policy", "POLICY"),
    ("gc", "--policy", "POLICY"),
    ("budget", "show", "--policy", "POLICY"),
    ("budget", "close", "people", "--policy", "POLICY"),
    ("account", "show", "POLICY"),
    ("account", "adopt", "latest", "POLICY"),
    ("account", "check", "1", "2", "--policy", "POLICY"),
    ("account", "forget", "people", "--yes", "--policy", "POLICY"),
    ("explore", "POLICY"),
    ("db", "current", "--policy", "POLICY"),
    ("db", "downgrade", "base", "--policy", "POLICY"),
]
_OMITTED = {name: {"role": "omit"} for name in ("sex", "ward")}
OTHER_KINDS: dict[str, tuple[list[tuple[str, ...]], dict[str, Any]]] = {
    "condensation": (
        [
            ("condense", "update", "stream", "counted", "--policy", "POLICY"),
            ("condense", "release", "stream", "--policy", "POLICY"),
        ],
        {"attributes": COUNTED["attributes"] | _OMITTED, "algorithm": {"name": "condensation"}},
    ),
    "hiding": (
        [("run", "POLICY", "-q"), ("associations", "hide", "POLICY", "-q")],
        {
            "attributes": {name: {"role": "insensitive"} for name in ("age", "sex", "ward")},
            "privacy": [
                {
                    "model": "hidden-rules",
                    "support": 2,
                    "confidence": 0.5,
                    "rules": [{"if": {"sex": "F"}, "then": {"ward": 1}}],
                }
            ],
            "algorithm": {"name": "hide-rules"},
        },
    ),
    "randomized": (
        [("run", "POLICY", "-q")],
        {
            "attributes": COUNTED["attributes"] | {"sex": {"role": "insensitive"}},
            "privacy": [{"model": "randomization"}],
            "algorithm": {"name": "randomize", "columns": {"age": {"noise": "gaussian", "deviation": 3}}},
        },
    ),
    "private": (
        [
            ("run", "POLICY", "-q"),
            ("ask", "POLICY", "count(*)", "--epsilon", "0.1"),
            ("budget", "grant", "people", "--epsilon", "1", "--reason", "a test", "--policy", "POLICY"),
        ],
        PRIVATE,
    ),
}
"""Commands on policies of other kinds, and what these policies say."""
NO_CATALOG = {
    "algorithms": "no source",
    "models": "no source",
    "qualities": "no source",
    "schema": "no source",
    "demo": "has a policy of its own",
    "ask-script": "printed for others to run",
    "grant-script": "printed for others to run",
    "audit": "of generated tables",
    "db upgrade": "makes the catalog",
    "init": "of no policy",
    "associations mine": "nothing is released or recorded",
    "federate union": "nothing is released or recorded",
    "federate support": "nothing is released or recorded",
    "hierarchy export": "nothing is released or recorded",
    "hierarchy import": "nothing is released or recorded",
    "hierarchy list": "nothing is released or recorded",
    "hierarchy missing": "nothing is released or recorded",
    "hierarchy show": "nothing is released or recorded",
    "lattice": "nothing is released or recorded",
    "loss": "nothing is released or recorded",
    "reconstruct": "nothing is released or recorded",
    "risk": "nothing is released or recorded",
    "utility": "nothing is released or recorded",
}
"""Commands that look into no catalog, and why not."""


@dataclass(frozen=True)
class Kept:
    """A table of counted persons, and policies about it in a directory."""

    url: str
    directory: Path

    def policy(self, **more: Any) -> Path:
        data: dict[str, Any] = {"source": {"url": self.url, "table": "counted"}, "release": {"table": "released"}}
        path = self.directory / "policy.yml"
        path.write_text(yaml.safe_dump(data | COUNTED | more))
        return path


def _make_counted(url: str) -> None:
    make_patients(url)
    execute(url, "CREATE TABLE counted AS SELECT age, sex, ward FROM patients")


@pytest.fixture
def kept(database_url: str, tmp_path: Path) -> Kept:
    _make_counted(database_url)
    return Kept(database_url, tmp_path)


@dataclass(frozen=True)
class Granted:
    """The same on PostgreSQL, with the runner's role and its grants as `grant-script` prints them."""

    place: Place
    directory: Path

    def data(self, role: str, seen: str = "counted", **more: Any) -> dict[str, Any]:
        """A policy's; seen: the table, or a view of it."""
        source = {"url": self.place.url(role), "table": f"public.{seen}"}
        return {"source": source, "release": {"table": "released.counted"}} | COUNTED | more

    def grant(self, roles: Roles | None = None, **more: Any) -> None:
        script = grant_script(build_policy(self.data("postgres", **more)), roles or self.place.roles)
        execute(self.place.postgres_url, *script.split("-- split --"))

    def policy(self, role: str | None = None, **more: Any) -> Path:
        path = self.directory / "policy.yml"
        path.write_text(yaml.safe_dump(self.data(role or self.place.roles.runner, **more)))
        return path


@pytest.fixture
def granted(postgres_server: PostgresServer, postgres_url: str, tmp_path: Path) -> Iterator[Granted]:
    with open_place(postgres_server, postgres_url) as place:
        _make_counted(place.postgres_url)
        granted = Granted(place, tmp_path)
        granted.grant()
        yield granted


def _ended(path: Path, commands: list[tuple[str, ...]] = COMMANDS, **environment: str) -> dict[str, tuple[int, str]]:
    """Call the commands with a policy; their exit codes and what they said, by the command."""
    ended = {}
    for command in commands:
        result = call(*(str(path) if word == "POLICY" else word for word in command), environment=environment)
        ended[" ".join(command)] = (result.exit_code, result.stderr)
    return ended


def _all_refused(ended: dict[str, tuple[int, str]], said: str) -> None:
    wrong = [f"{name}: {code}, {text}" for name, (code, text) in ended.items() if code != 4 or said not in text]
    assert "\n".join(wrong) == ""


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("sqlanom", "AUTHORIZATION"),  # mistyped, and the runner may make no schema
        ("public", "GRANT CREATE ON SCHEMA"),  # there, and others' to create in
        ("others", "GRANT USAGE, CREATE ON SCHEMA"),  # the catalog of another role
        ("sqlanon", 'ON sqlanon.questions TO "'),  # its own, and a right on a table is missing
    ],
)
def test_every_command_refuses_a_catalog_that_the_role_cannot_use(granted: Granted, schema: str, said: str) -> None:
    url = granted.place.postgres_url
    assert call("run", granted.policy(), "-q").exit_code == 0
    assert call("db", "upgrade", "--policy", granted.policy("postgres", catalog={"schema": "others"})).exit_code == 0
    execute(url, f"REVOKE INSERT ON sqlanon.questions FROM {quoted(granted.place.roles.runner)}")
    _all_refused(_ended(granted.policy(catalog={"schema": schema})), said)
    assert query(url, "SELECT count(*) FROM pg_class WHERE relname LIKE 'sqlanon%' AND relkind = 'r'") == [(0,)]


@pytest.mark.parametrize("schema", ["mistyped", "not a catalog"])
def test_no_command_makes_a_catalog_where_another_knows_the_source(kept: Kept, schema: str) -> None:
    execute(kept.url, 'CREATE SCHEMA "not a catalog"', 'CREATE TABLE "not a catalog".runs (i INTEGER)')
    assert call("run", kept.policy(), "-q").exit_code == 0
    _all_refused(_ended(kept.policy(catalog={"schema": schema})), "There is no catalog in schema")
    there = "SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'mistyped'"
    assert query(kept.url, there) == []


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_commands_on_policies_of_other_kinds_refuse_it_too(kept: Kept, kind: str) -> None:
    commands, more = OTHER_KINDS[kind]
    assert call("run", kept.policy(), "-q").exit_code == 0
    _all_refused(_ended(kept.policy(catalog={"schema": "mistyped"}, **more), commands), "There is no catalog in schema")


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_commands_on_policies_of_other_kinds_refuse_one_of_another_role(granted: Granted, kind: str) -> None:
    commands, more = OTHER_KINDS[kind]
    assert call("db", "upgrade", "--policy", granted.policy("postgres", catalog={"schema": "others"})).exit_code == 0
    said = "GRANT USAGE, CREATE ON SCHEMA"
    _all_refused(_ended(granted.policy(catalog={"schema": "others"}, **more), commands), said)


def test_every_command_is_tried_or_looks_into_no_catalog() -> None:
    known = {name.removeprefix("sqlanon ") for name, _ in all_commands(program(), "sqlanon")}
    kinds = [command for commands, _ in OTHER_KINDS.values() for command in commands]
    tried = {name for command in [*COMMANDS, *kinds] for name in (command[0], " ".join(command[:2]))} & known
    assert known - tried - set(NO_CATALOG) == {"federate serve"}  # tests/federation
    assert tried & set(NO_CATALOG) == set()


def test_a_file_that_is_no_catalog_yet_is_not_made_either(kept: Kept) -> None:
    assert call("run", kept.policy(), "-q").exit_code == 0
    file = kept.directory / "mistyped.duckdb"
    _all_refused(_ended(kept.policy(catalog={"url": f"duckdb:///{file}"})), "")
    (kept.directory / "notes.duckdb").write_text("no database")
    _all_refused(_ended(kept.policy(catalog={"url": f"duckdb:///{kept.directory / 'notes.duckdb'}"})), "")
    assert not file.exists()


@pytest.fixture
def filed(tmp_path: Path) -> Kept:
    """A file of persons, with a release that the catalog beside the file knows."""
    (tmp_path / "out").mkdir()
    rows = [f"{20 + i % 9},{'FM'[i % 2]},{i % 5}" for i in range(90)]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,ward", *rows]) + "\n")
    filed = Kept("", tmp_path)
    assert call("run", filed.policy(republish="same-recoding", **FILES), "-q").exit_code == 0
    return filed


FILES: dict[str, Any] = {"source": {"file": "people.csv"}, "release": {"file": "out/released.csv"}}


def test_a_catalog_of_the_same_name_is_said_with_its_database(filed: Kept) -> None:
    other = {"url": f"duckdb:///{filed.directory}/other.duckdb"}
    there = f'There is one in "sqlanon" of {filed.directory}/sqlanon.duckdb.'
    refused = call("run", filed.policy(catalog=other, **FILES), "-q", "--replace")
    assert (refused.exit_code, there in refused.stderr) == (4, True), refused.stderr
    assert call("db", "upgrade", "--policy", filed.policy(catalog=other, **FILES)).exit_code == 0
    refused = call("run", filed.policy(catalog=other, **FILES), "-q", "--replace")
    place = f'in the catalog of schema "sqlanon" of {filed.directory}/sqlanon.duckdb'
    assert (refused.exit_code, place in refused.stderr) == (2, True), refused.stderr


def test_another_catalog_that_a_process_holds_is_waited_for_in_a_sentence(filed: Kept) -> None:
    policy = filed.policy(catalog={"url": f"duckdb:///{filed.directory}/other.duckdb"}, **FILES)
    assert call("db", "upgrade", "--policy", policy).exit_code == 0
    code = f"import duckdb; held = duckdb.connect({str(filed.directory / 'sqlanon.duckdb')!r}); print(); input()"
    with subprocess.Popen([sys.executable, "-uc", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        refused = call("run", policy, "-q", "--replace")
        assert (refused.exit_code, "Another catalog may know the source" in refused.stderr) == (1, True), refused.stderr
        assert call("runs", "--policy", policy).exit_code == 0
        holder.communicate(b"\n")
    assert call("run", policy, "-q", "--replace").exit_code == 2


def test_a_schema_of_other_tables_is_taken_for_no_catalog(kept: Kept) -> None:
    execute(kept.url, "CREATE SCHEMA shop", "CREATE TABLE shop.orders (i INTEGER)")
    commands = [command for command in COMMANDS if command[0] != "verify"]  # there is no release yet
    _all_refused(_ended(kept.policy(catalog={"schema": "shop"}), commands[:4]), "other tables and no catalog")
    execute(kept.url, "CREATE TABLE shop.alembic_version (version_num TEXT)")
    execute(kept.url, "INSERT INTO shop.alembic_version VALUES ('0a1b2c')")
    _all_refused(_ended(kept.policy(catalog={"schema": "shop"}), commands), "another program")


def test_a_catalog_of_another_version_is_brought_up_to_date_or_refused(kept: Kept) -> None:
    policy = kept.policy(catalog={"schema": "audit"})
    assert call("run", policy, "-q").exit_code == 0
    assert call("db", "downgrade", "0005", "--policy", policy).exit_code == 0
    _all_refused(_ended(policy, [("check", "POLICY"), ("verify", "POLICY")]), "db upgrade")
    assert call("runs", "--policy", policy).exit_code == 0
    assert call("check", policy).exit_code == 0
    execute(kept.url, "UPDATE audit.alembic_version SET version_num = '9999'")
    _all_refused(_ended(policy), "upgrade sqlanon")
    asked = call("ask", kept.policy(), FIRST)  # whose history may be in that catalog
    assert (asked.exit_code, "upgrade sqlanon" in asked.stderr) == (4, True), asked.stderr


def test_a_new_name_is_a_new_catalog_for_a_source_that_none_knows(kept: Kept) -> None:
    policy = kept.policy(catalog={"schema": "Audit log"})
    assert call("check", policy).exit_code == 0
    assert call("run", policy, "-q").exit_code == 0
    assert query(kept.url, 'SELECT status FROM "Audit log".runs') == [("published",)]


def test_a_question_is_audited_with_the_histories_of_all_catalogs(kept: Kept) -> None:
    assert call("ask", kept.policy(), FIRST).exit_code == 0
    assert call("ask", kept.policy(), SECOND).exit_code == 3
    other = kept.policy(catalog={"schema": "fresh"})
    assert call("ask", other, SECOND).exit_code == 4
    assert call("db", "upgrade", "--policy", other).exit_code == 0
    assert call("ask", other, SECOND).exit_code == 3
    file = kept.policy(catalog={"url": f"duckdb:///{kept.directory}/fresh.duckdb"})
    assert call("ask", file, SECOND).exit_code == 4
    assert call("db", "upgrade", "--policy", file).exit_code == 0
    assert call("ask", file, SECOND).exit_code == 3
    assert call("ask", file, FIRST).exit_code == 0


def test_one_recoding_is_one_recoding_in_all_catalogs(kept: Kept) -> None:
    assert call("run", kept.policy(republish="same-recoding"), "-q").exit_code == 0
    for catalog in ({"schema": "fresh"}, {"url": f"duckdb:///{kept.directory}/fresh.duckdb"}):
        other = kept.policy(catalog=catalog, release={"table": "second"})
        assert call("run", other, "-q").exit_code == 4
        assert call("db", "upgrade", "--policy", other).exit_code == 0
        for command, code in (("run", 2), ("check", 0)):
            refused = call(command, other)
            assert (refused.exit_code, "(in the catalog of schema" in refused.output) == (code, True)


def test_one_recoding_of_a_file_is_one_in_another_file_too(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    rows = [f"{20 + i % 9},{'FM'[i % 2]},{i % 5}" for i in range(90)]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,ward", *rows]) + "\n")
    kept = Kept("", tmp_path)
    files = {"source": {"file": "people.csv"}, "release": {"file": "out/released.csv"}}
    assert call("run", kept.policy(republish="same-recoding", **files), "-q").exit_code == 0
    other = kept.policy(catalog={"url": f"duckdb:///{tmp_path}/fresh.duckdb"}, **files)
    assert call("run", other, "-q", "--replace").exit_code == 4
    assert call("db", "upgrade", "--policy", other).exit_code == 0
    assert call("run", other, "-q", "--replace").exit_code == 2


@pytest.mark.parametrize("turn", [1, -1])
def test_one_recoding_of_a_file_is_one_wherever_the_release_is(tmp_path: Path, turn: int) -> None:
    """A release beside its source has a catalog in the user's directory, another one a catalog beside the source."""
    (tmp_path / "out").mkdir()
    rows = [f"{20 + i % 9},{'FM'[i % 2]},{i % 5}" for i in range(90)]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,ward", *rows]) + "\n")
    kept, state = Kept("", tmp_path), {"XDG_STATE_HOME": str(tmp_path / "state")}
    first, second = ("out/released.csv", "released.csv")[::turn]
    for release, more, code in ((first, {"republish": "same-recoding"}, 0), (second, {}, 2)):
        policy = kept.policy(source={"file": "people.csv"}, release={"file": release}, **more)
        assert call("run", policy, "-q", environment=state).exit_code == code
    assert not (tmp_path / second).exists()


def test_a_source_has_one_budget_in_all_catalogs(kept: Kept) -> None:
    granting = ("budget", "grant", "people", "--epsilon", "1", "--reason", "a test", "--policy")
    assert call(*granting, kept.policy(**PRIVATE)).exit_code == 0
    if kept.url.startswith("duckdb"):  # names that differ in case are one name there
        assert call(*granting, kept.policy(catalog={"schema": "SQLanon"}, **PRIVATE)).exit_code == 0
    other = kept.policy(catalog={"schema": "fresh"}, **PRIVATE)
    assert call(*granting, other).exit_code == 4
    assert call("db", "upgrade", "--policy", other).exit_code == 0
    refused = call(*granting, other)
    assert (refused.exit_code, "one budget for good" in refused.stderr) == (2, True)


def test_a_catalog_that_cannot_be_read_is_not_taken_for_none(granted: Granted) -> None:
    """Another runner's history of the same table: while it is unknown, nothing is answered, and the way is said."""
    second = Roles(granted.place.roles.runner + " 2", granted.place.roles.reader)
    own: dict[str, Any] = {"catalog": {"schema": "second"}, "release": {"table": "second_release.counted"}}
    assert call("ask", granted.policy(), FIRST).exit_code == 0
    try:
        granted.grant(second, **own)
        for more, code in (({}, 0), ({"republish": "same-recoding"}, 4)):
            assert call("run", granted.policy(second.runner, **own, **more), "-q", "--replace").exit_code == code
        policy = granted.policy(second.runner, **own)
        refused = call("ask", policy, SECOND)
        assert refused.exit_code == 4
        (_, grants), runner = refused.stderr.split("run ", 1), quoted(granted.place.roles.runner)
        assert "can't be read" in refused.stderr
        execute(granted.place.postgres_url, *grants.strip().removesuffix(".").split("; "))
        asked = call("ask", policy, SECOND)
        assert (asked.exit_code, "denied" in asked.stderr) == (3, True), asked.stderr
        execute(granted.place.postgres_url, f"REVOKE ALL ON SCHEMA sqlanon FROM {quoted(second.runner)}")
        execute(granted.place.postgres_url, f"REVOKE SELECT ON public.counted FROM {runner}")
        execute(granted.place.postgres_url, f"REVOKE SELECT (age, sex, ward) ON public.counted FROM {runner}")
        assert call("ask", policy, FIRST).exit_code == 0  # whoever may not read the table has no history of it
    finally:
        execute(granted.place.postgres_url, f"DROP OWNED BY {quoted(second.runner)} CASCADE")
        execute(granted.place.postgres_url, f"DROP ROLE {quoted(second.runner)}")


def test_a_history_of_who_sees_the_table_through_a_view_alone_binds_too(granted: Granted) -> None:
    """Two runners with a view each, and with no right on the table beneath."""
    second = Roles(granted.place.roles.runner + " 3", granted.place.roles.reader)
    execute(
        granted.place.postgres_url, "CREATE VIEW one AS SELECT * FROM counted", "CREATE VIEW two AS SELECT * FROM one"
    )
    own: dict[str, Any] = {"catalog": {"schema": "second"}, "release": {"table": "second_release.counted"}}
    runner = quoted(granted.place.roles.runner)
    execute(
        granted.place.postgres_url,
        f"REVOKE SELECT ON public.counted FROM {runner}",
        f"REVOKE SELECT (age, sex, ward) ON public.counted FROM {runner}",
    )
    try:
        granted.grant(seen="two")
        granted.grant(second, seen="one", **own)
        assert call("ask", granted.policy(seen="two"), FIRST).exit_code == 0
        refused = call("ask", granted.policy(second.runner, seen="one", **own), SECOND)
        assert (refused.exit_code, "can't be read" in refused.stderr) == (4, True), refused.output
    finally:
        execute(granted.place.postgres_url, f"DROP OWNED BY {quoted(second.runner)} CASCADE")
        execute(granted.place.postgres_url, f"DROP ROLE {quoted(second.runner)}")


def test_the_schema_of_releases_stands_in_where_none_is_named_and_is_said(granted: Granted) -> None:
    url, roles = granted.place.postgres_url, granted.place.roles
    execute(url, f"ALTER SCHEMA sqlanon OWNER TO {quoted(roles.reader)}")
    execute(url, f"REVOKE ALL ON SCHEMA sqlanon FROM {quoted(roles.runner)}")
    policy, said = granted.policy(), "its catalog is in schema"
    asked = call("ask", policy, FIRST)
    assert (asked.exit_code, said in asked.stderr) == (0, True), asked.stderr
    for command in (("runs", "--policy", policy), ("check", policy), ("gc", "--policy", policy)):
        ended = call(*command)
        assert (ended.exit_code, said in ended.stderr) == (0, True)
    readable = (
        "SELECT relname FROM pg_class WHERE relname LIKE 'sqlanon%' AND relkind = 'r'"
        f" AND has_table_privilege('{roles.reader}', oid, 'SELECT')"
    )
    assert query(url, readable) == []
    named = call("runs", "--policy", granted.policy(catalog={"schema": "released"}))
    assert (named.exit_code, "No run is recorded" in named.stderr) == (0, True)
    execute(url, f"GRANT SELECT ON released.sqlanon_questions TO {quoted(roles.reader)}")  # as older versions left it
    assert call("ask", policy, SECOND).exit_code == 3
    assert query(url, readable) == []


def test_a_url_whose_catalog_has_another_name_is_not_taken_for_empty(kept: Kept) -> None:
    assert call("runs", "--url", kept.url).exit_code == 0
    assert call("run", kept.policy(catalog={"schema": "audit"}), "-q").exit_code == 0
    commands = [("runs",), ("show", "latest"), ("report", "latest"), ("freeze", "latest", "--name", "n"), ("gc",)]
    _all_refused(_ended(kept.directory, commands, SQLANON_URL=kept.url), "audit")
