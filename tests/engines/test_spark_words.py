"""URLs of Spark and the spelling of its statements, which take no Spark; and what is refused before any is started."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.engines import connect
from sqlanon.engines.spark import session as sessions
from sqlanon.engines.spark.dialect import SparkAddress, SparkSQL, address_of
from sqlanon.engines.spark.engine import SparkEngine
from sqlanon.engines.spark.errors import condition_of, opening_error, statement_error, unless_disconnected
from sqlanon.engines.spark.session import in_one_job
from sqlanon.engines.urls import redacted
from sqlanon.errors import AccessError, Cancelled, PolicyError
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.sql import Number, RedactedValue, Spelling, Statement, Text, expression
from tests.cli.support import call
from tests.random_cases import many
from tests.run_support import anonymize, open_database

SPELLING = Spelling((("TEXT", "STRING"), ("AS MATERIALIZED", "AS")), raw_literals=True)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("spark+local://2", SparkAddress("local[2]", {})),
        ("spark+local://", SparkAddress("local[*]", {})),
        ("spark+local://2?spark.driver.memory=4g", SparkAddress("local[2]", {"spark.driver.memory": "4g"})),
        ("spark+local-cluster://2,1,2048", SparkAddress("local-cluster[2,1,2048]", {})),
        ("spark://master:7077/", SparkAddress("spark://master:7077", {})),
        ("sc://host:15002/;token=x", SparkAddress(remote="sc://host:15002/;token=x")),
    ],
)
def test_urls_name_a_master_or_a_server(url: str, address: SparkAddress) -> None:
    assert address_of(url) == address


@pytest.mark.parametrize(
    "url",
    ["spark+local://two", "spark+local-cluster://2", "spark://", "spark+local://2?memory=4g", "sc://", "sc:///;a=b"],
)
def test_wrong_urls_are_refused_with_the_form(url: str) -> None:
    with pytest.raises(PolicyError, match=r"(?i)spark"):
        address_of(url)


def test_words_are_spelled_outside_of_literals_names_and_comments() -> None:
    text = "WITH a AS MATERIALIZED (SELECT CAST(x AS TEXT), \"TEXT\", 'TEXT', TEXTURE) -- TEXT"
    assert SPELLING.apply(text) == "WITH a AS (SELECT CAST(x AS STRING), \"TEXT\", 'TEXT', TEXTURE) -- TEXT"


def test_literals_with_a_backslash_are_raw() -> None:
    assert SPELLING.apply(str(Text("a\\b"))) == r"r'a\b'"
    assert SPELLING.apply(str(Text("a\\'b"))) == r"(r'a\' || '''' || r'b')"


@settings(max_examples=many(60), deadline=None)
@given(st.lists(st.text("\\'\"-rT \n", max_size=6).map(lambda text: str(Text(text))), max_size=3))
def test_a_spelled_statement_stays_as_it_is(literals: list[str]) -> None:
    """Statements are parts of others, and would be spelled twice."""
    once = SPELLING.apply("SELECT " + ", ".join(["CAST(1 AS TEXT)", *literals]))
    assert SPELLING.apply(once) == once


def test_a_catalog_has_to_be_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yml").write_text(
        "source: {url: 'spark+local://2', table: people}\nrelease: {table: released}\n"
        "attributes: {age: {role: quasi-identifier}}\nprivacy: [{model: k-anonymity, k: 5}]\n"
    )
    result = call("run", "policy.yml")
    assert result.exit_code == 2, result.output
    assert "Spark cannot keep the catalog" in result.output


CLUSTERS = "clusters and condensation are not carried out on Spark"
INTERVALS = "ordered sets are not searched on Spark"


@pytest.mark.parametrize(
    ("algorithm", "reason"),
    [
        *((name, CLUSTERS) for name in ("microaggregation", "condensation", "r-gather")),
        ("ordered-sets", INTERVALS),
    ],
)
@pytest.mark.parametrize("command", ["check", "run"])
def test_recodings_that_spark_lacks_are_refused_before_it_starts(
    algorithm: str, reason: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yml").write_text(
        "source: {url: 'spark+local://2', table: people}\nrelease: {table: released}\n"
        "catalog: {url: 'duckdb:///catalog.duckdb'}\nattributes: {age: {role: quasi-identifier}}\n"
        f"privacy: [{{model: k-anonymity, k: 5}}]\nalgorithm: {{name: {algorithm}}}\n"
    )
    result = call(command, "policy.yml")
    assert result.exit_code == 2, result.output
    assert reason in result.output


def test_limits_that_are_the_clusters_are_refused() -> None:
    result = call("verify", "spark+local://2", "people", "--qi", "age", "--k", "5", "--memory-limit", "2GB")
    assert result.exit_code == 2
    assert "spark.driver.memory" in result.output


def test_the_traits_say_what_is_lacking() -> None:
    assert not SparkSQL.keeps_catalog


def test_a_token_of_connect_is_not_shown() -> None:
    shown = redacted("sc://me:secret@host:15002/;user_id=me;token=secret;use_ssl=true")
    assert shown == "sc://me@host:15002/;user_id=me;token=***;use_ssl=true"
    assert redacted("postgresql://host/db?password=a;b=c&x=1") == "postgresql://host/db?password=***&x=1"


@pytest.mark.parametrize("value", ["a\\b", "\\", "it's \\ 'so'", "a'b", "", "'\\'"])
def test_texts_that_records_hide_stay_hidden(value: str) -> None:
    """A raw literal is hidden as any other one."""
    text = SparkSQL.renderer()("count_rows", table=expression("t WHERE a = {value}", value=RedactedValue(value))).text
    statement = Statement("count_rows", text)
    assert statement.record == "SELECT count(*) AS n FROM t WHERE a = /* withheld */ ?"
    kept: list[Number | str] = []
    statement.written(lambda one: str(kept.append(one)))
    assert kept == [value]


@pytest.mark.parametrize(
    ("word", "spelled"),
    [
        ("TIMESTAMP", "TIMESTAMP_NTZ"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP_LTZ"),
        ("TIMESTAMPTZ", "TIMESTAMP_LTZ"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("REAL", "FLOAT"),
        ("VARCHAR", "STRING"),
        ("HUGEINT", "DECIMAL(38, 0)"),
        ("BIGINT", "BIGINT"),
    ],
)
def test_types_are_spelled_once(word: str, spelled: str) -> None:
    spelling = Spelling(tuple(SparkSQL.spellings.items()))
    assert spelling.apply(f"CAST(x AS {word})") == f"CAST(x AS {spelled})"
    assert spelling.apply(spelled) == spelled


@pytest.mark.parametrize(
    ("form", "more", "told"),
    [
        ("procedure", (), "Spark has no procedures; `sqlanon freeze` makes a job"),
        ("labels", (), "`sqlanon.read_labels` reads those of a data frame"),
    ],
)
def test_forms_of_a_recoding_that_spark_lacks_are_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, more: tuple[str, ...], told: str
) -> None:
    """The rules of a run on DuckDB, as if they were for Spark."""
    monkeypatch.chdir(tmp_path)
    with open_database(f"duckdb:///{tmp_path}/rows.duckdb") as database:
        table = database.create({"age": "INTEGER"}, [(n % 9,) for n in range(40)])
        run = anonymize(database.policy(table, {"age": "quasi-identifier"})).run
        url = database.url

    def of_spark(*arguments: Any) -> Any:
        stored = read_rules(*arguments)
        return replace(stored, content={**stored.content, "dialect": "spark"})

    monkeypatch.setattr("sqlanon.jobs.freezing.read_rules", of_spark)
    result = call("export", run, "--as", form, "--name", "people", *more, "--url", url)
    assert result.exit_code == 2, result.output
    assert told in " ".join(result.output.split())


def test_what_singles_rows_out_is_refused_before_spark_starts() -> None:
    for option in ("--subsets", "--suda"):
        result = call("risk", "spark+local://2", "people", "--qi", "age,zip", option, "2")
        assert result.exit_code == 2, result.output
        assert "not counted on Spark; copy the columns to DuckDB" in " ".join(result.output.split())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *more: None if name == "pyspark" else find(name, *more)
    )
    with pytest.raises(AccessError, match="pip install 'sqlanon"):
        connect("spark+local://2")


@pytest.mark.parametrize(
    "value",
    ["jdbc%3Amysql%3A%2F%2Fhive%3As3cr3t%40db", "jdbc%3Amysql%3A%2F%2Fdb%3Fpassword%3Ds3cr3t", "hive%3As3cr3t%40db"],
)
def test_secrets_inside_of_settings_are_not_shown(value: str) -> None:
    shown = redacted(f"spark+local://2?spark.hadoop.javax.jdo.option.ConnectionURL={value}&spark.driver.memory=4g")
    assert "s3cr3t" not in shown
    assert shown.endswith("spark.driver.memory=4g")


def error_of(kind: str, text: str) -> Exception:
    """Make an error of a class of this name; of Connect's, the text is the status."""
    status = {"getGrpcStatusCode": lambda _: SimpleNamespace(name=text)} if "Grpc" in kind else {}
    made: Exception = type(kind, (Exception,), status)("a value UNAVAILABLE" if status else text)
    return made


@pytest.mark.parametrize(
    ("kind", "text", "lost"),
    [
        ("Py4JError", "An error occurred while calling o36.sql", True),
        ("Py4JError", "An error occurred while calling o36.sql. Trace:\nMethod sql([]) does not exist", False),
        ("Py4JNetworkError", "Answer from Java side is empty", True),
        ("ConnectionRefusedError", "", True),
        ("SparkConnectGrpcException", "UNAVAILABLE", True),
        ("SparkConnectGrpcException", "INTERNAL", False),
    ],
)
def test_a_lost_connection_is_told_from_other_errors(kind: str, text: str, lost: bool) -> None:
    """Errors of packages that need not be there go by the names of their classes."""
    error = ConnectionRefusedError() if kind == "ConnectionRefusedError" else error_of(kind, text)
    assert ("to run again is safe" in str(statement_error(error, "staging/stage_rows"))) is lost
    assert ("has ended" in str(opening_error(error, "local[2]"))) is lost
    with contextlib.nullcontext() if lost else pytest.raises(type(error)), unless_disconnected():
        raise error


class DeadJavaError(Exception):
    """An error whose text and condition are asked of a JVM that has gone."""

    def __str__(self) -> str:
        raise error_of("Py4JNetworkError", "Answer from Java side is empty")

    def getCondition(self) -> str:
        return str(self)


def test_an_error_of_a_jvm_that_has_gone_is_one_of_a_lost_connection() -> None:
    error = DeadJavaError()
    assert "to run again is safe" in str(statement_error(error, "staging/stage_rows"))
    assert "has ended" in str(opening_error(error, "local[2]"))
    assert condition_of(error) == ""
    with unless_disconnected():
        raise error


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.spark.SparkException: Job 3 cancelled because SparkContext was shut down",
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
    ],
)
def test_a_context_that_was_shut_down_is_a_lost_connection(text: str) -> None:
    explained = statement_error(error_of("Py4JJavaError", text), "staging/stage_rows")
    assert "to run again is safe" in str(explained)


def test_a_context_ends_where_no_session_of_it_could_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the next URL with other settings would be refused, as if a session were open."""
    pytest.importorskip("pyspark")
    stopped: list[bool] = []

    def start(*_: Any) -> Any:
        monkeypatch.setattr(sessions, "_owned", SimpleNamespace(stop=lambda: stopped.append(True)))
        raise ConnectionRefusedError

    monkeypatch.setattr(sessions, "_open", 0)
    monkeypatch.setattr(sessions, "_connect", start)
    with pytest.raises(AccessError, match="has ended"):
        sessions.open_session(SparkAddress("local[2]", {}))
    assert stopped == [True]
    assert sessions._owned is None


@pytest.mark.parametrize(
    ("text", "is_cancelled"),
    [
        ("[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job tags", True),
        ("[OPERATION_CANCELED] Operation has been canceled.", True),
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `cancelled_visits` cannot be found.", False),
        ("[CAST_INVALID_INPUT] The value 'cancelled' of the type \"STRING\" cannot be cast", False),
    ],
)
def test_names_and_values_that_say_cancelled_cancel_nothing(text: str, is_cancelled: bool) -> None:
    assert isinstance(statement_error(RuntimeError(text), "encoding/create_values"), Cancelled) is is_cancelled


@pytest.mark.parametrize(
    "text",
    [
        "java.io.FileNotFoundException: /data/day=secret/part.parquet (Permission denied)",
        "java.io.IOException: Mkdirs failed to create file:/data/day=secret/_temporary",
        "org.apache.hadoop.security.AccessControlException: Permission denied: user=me, path=/data/day=secret",
    ],
)
def test_a_missing_right_is_named_without_paths(text: str) -> None:
    """Directories of a table have values in their names."""
    denied = statement_error(error_of("Py4JJavaError", text), "encoding/create_values")
    assert isinstance(denied, AccessError)
    assert "permission denied" in str(denied)
    assert "secret" not in str(denied)


def test_a_server_that_refuses_a_session_is_named_with_its_status() -> None:
    refused = opening_error(error_of("SparkConnectGrpcException", "UNAUTHENTICATED"), "sc://host:15002")
    assert str(refused) == "No session with Spark at sc://host:15002 (SparkConnectGrpcException UNAUTHENTICATED)."


@pytest.mark.parametrize(("parts", "few"), [("200", "32"), ("8", "8"), ("auto", "32")])
def test_settings_of_statements_in_one_job_are_put_back(parts: str, few: str) -> None:
    kept = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": parts}
    settings_there = dict(kept)
    conf = SimpleNamespace(get=settings_there.get, set=settings_there.__setitem__)
    session: Any = SimpleNamespace(conf=conf)
    with contextlib.suppress(ZeroDivisionError), in_one_job(session):
        assert settings_there == {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": few}
        raise ZeroDivisionError
    assert settings_there == kept


ASK_ONCE_MORE = """
from sqlanon.engines import connect
from sqlanon.engines.spark import session as servers
from sqlanon.errors import AccessError
servers.RETRIES = 1
try:
    connect("sc://127.0.0.1:{port}")
except AccessError as error:
    print(error)
"""


def test_a_server_that_is_lost_is_not_asked_for_minutes() -> None:
    grpc = pytest.importorskip("grpc")
    asked: list[object] = []

    def refuse(request: object, context: Any) -> None:
        asked.append(request)
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    handlers = {"Config": grpc.unary_unary_rpc_method_handler(refuse)}
    with ThreadPoolExecutor(2) as workers:
        server = grpc.server(workers)
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("spark.connect.SparkConnectService", handlers)]
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        script = [sys.executable, "-c", ASK_ONCE_MORE.format(port=port)]
        done = subprocess.run(script, capture_output=True, text=True, timeout=120, check=True)
        server.stop(None).wait()
    assert "Spark has ended, or is not reached any more" in done.stdout
    assert done.stderr == ""
    assert len(asked) <= 4  # the first setting, and what pyspark asks as it ends: each once more


@pytest.mark.parametrize(
    ("remote", "most", "by_spark"),
    [("sc://host:15002/", 0, True), ("sc://host:15002/", 1_000, False), (None, 0, False)],
)
def test_tables_too_large_for_a_message_are_not_sent_in_one(
    remote: str | None, most: int, by_spark: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect("duckdb:///:memory:") as home:
        home.execute(Statement("create", "CREATE TEMP TABLE classes AS SELECT 1 AS leaf"))
        engine = SparkEngine.__new__(SparkEngine)
        engine._address = SparkAddress(None if remote else "local[1]", remote=remote)
        tables = SimpleNamespace(home=home, bring=lambda *_: None, frame=lambda *_: None)
        monkeypatch.setattr(engine, "_tables", tables, raising=False)
        monkeypatch.setattr(engine, "_guarded", lambda _, work: work())
        monkeypatch.setattr(engine, "tasks_for", lambda _: 0)
        monkeypatch.setattr(engine, "_carry_out", lambda *_: ["there"])
        monkeypatch.setattr("sqlanon.engines.spark.engine.MOST_OF_MESSAGE", most)
        classes = home.temporary("classes")
        measured = engine.measure_with_rows([classes], [classes], [], 1, lambda _: "by Spark")
    assert measured == ("by Spark" if by_spark else "there")
