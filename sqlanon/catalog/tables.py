"""The tables of the catalog: their columns and keys.

The names carry no schema: a catalog's connection has its schema as the only one it looks in. No key is
foreign, because DuckDB has neither cascading keys nor updates of a row that others refer to.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from sqlanon.sql import Identifier, Relation

FALLBACK_PREFIX = "sqlanon_"
VERSION_TABLE = "alembic_version"

# A column is its name, its type, and `key`; with ? it may be NULL.
_COLUMNS = {
    # database: where the run's work tables are; process: host, boot, process id and its start, which say who is alive;
    # policy: canonical text, without secrets; seed: of the samples it draws, NULL where it draws none; result: JSON, as
    # `run --json` prints it; job: the name of the job that it was a run of.
    "runs": "id text key, status text, engine text, engine_version text, database text, process text, source text,"
    " release text, source_rows bigint?, started moment, finished moment?, policy text, policy_digest text,"
    " sqlanon_version text, algorithm text, seed bigint?, result text?, error_class text?, error_message text?,"
    " job text?",
    # name: the statement's template; row_count: NULL where the driver doesn't say.
    "steps": "run text key, number integer key, phase text, name text, statement text, seconds float8,"
    " row_count bigint?",
    # relation: as SQL writes it, or the file; recoding: JSON, or where the rule table is; digest: of the recoding;
    # content_digest: of the released rows, or of the file.
    "releases": "run text key, relation text key, kind text, row_count bigint, suppressed bigint, classes bigint,"
    " recoding text, digest text, content_digest text?",
    # kind: tree, levels or cuts; content: JSON, the attributes, and what rules of levels consist of; table_prefix: what
    # the names of its tables begin with, in the catalog's schema.
    "rule_sets": "run text key, kind text, content text, leaves bigint, depth integer, table_prefix text?",
    # specification: JSON; relation: the dimension table, where it is kept.
    "hierarchies": "name text key, digest text key, specification text, height integer, leaves bigint, relation text?",
    # database: as in runs, the release's may be another; is_prefix: every table whose name begins so.
    "work_tables": "run text key, relation text key, database text key, is_prefix boolean, created moment",
    # See `records.Job`. inspection, recoding, assigning, showing: SELECTs of the procedure; the last three hold values
    # of the data.
    "jobs": "name text key, version integer key, run text, source text, release text, on_violation text,"
    " budget float8?, most_rows bigint?, routine text?, inspection text?, recoding text?, created moment,"
    " schedule text?, scheduler text?, assigning text?, showing text?",
    # Runs under way. state: JSON, the phase and the figures of the search; seconds: since the run began, by its own
    # clock; seen: when it told that, by the database's clock; cancel: whether somebody has asked the run to end.
    "live": "run text key, state text, seconds float8, seen moment, cancel boolean",
    # content: JSON, the rules that a search came to, and what it went by.
    "checkpoints": "run text key, content text",
    # unit: the column of persons where these are protected, NULL where rows are; entries: how many were ever written,
    # which every run that spends updates first, so that of two runs one waits for the other.
    "budgets": "name text key, unit text?, entries bigint, opened moment, closed moment?",
    # An identity of a source belongs to one budget for good.
    "budget_sources": "identity text key, budget text, added moment",
    # Amounts that were added to privacy budgets, 0 where a source was added alone; epsilon: an exact fraction,
    # such as 3 or 1/10. Rows are never changed.
    "budget_grants": "budget text key, number bigint key, epsilon text, granted_by text, reason text, granted moment",
    # What runs consumed of budgets, a row a mechanism, written before it looks at the source. number: from 1, without
    # gaps in a budget; epsilon, sensitivity, scale: exact fractions. Rows are never changed.
    "budget_entries": "budget text key, number bigint key, run text, release text, mechanism text, epsilon text,"
    " sensitivity text, scale text, written moment",
    # A history for each table that questions were answered of. digest: of the table's rows as the first question saw
    # them; questions: how many were ever answered.
    "histories": "name text key, digest text, questions bigint, opened moment",
    "history_sources": "identity text key, history text, added moment",
    # Answered questions, each written before its answer was worked out; answers are not kept. number: from 1, without
    # gaps in a history; adds: of which measures it told more than follows from those before, as JSON. Rows are never
    # changed.
    "questions": "history text key, number bigint key, question text, adds text, asked_by text, written moment",
    # An account for the releases about the same people. id: drawn at random; key: the secret one of the digests of
    # persons, as hexadecimal digits; releases: how many lines were ever entered.
    "accounts": "name text key, id bigint, key text, releases bigint, opened moment",
    # What accounts know their people by. identity: a table of these, by its name or by what the database calls it, see
    # `catalog.sources`; subject: its column that tells them apart, NULL where it is not known.
    "account_sources": "account bigint key, identity text key, subject text?",
    # Lines of accounts. kind: of `accounts.LineKind`; run: ask for answers; source: as a run records it; about: the
    # release, the question, what noise costs, or the job of a stream. groups: of persons with the same classes in all
    # releases so far, whom the same answers are about; smallest: the persons of the smallest; below_k: the persons in
    # groups of fewer than k. Figures are NULL where nobody is counted. rows, loss: of a release, or a batch;
    # counterfeits: rows of nobody among them, NULL where none can be.
    "account_releases": "account bigint key, number bigint key, kind text, run text, source text, about text?,"
    " entered moment, k bigint?, persons bigint?, groups bigint?, smallest bigint?, below_k bigint?, came bigint?,"
    " departed bigint?, rows bigint, loss float8?, counterfeits bigint?",
    # person: a keyed digest; signature: the number of the group, negative where the newest release lacks the person;
    # batch: the number of the line that added the person to a release; of the one by which the row left, negative; 0
    # for none. row_digest: a keyed one of the row that a batch shows, or of the set of values that a class of
    # m-invariance shows; NULL elsewhere.
    "account_persons": "account bigint, person uuid, signature bigint, batch integer, row_digest bigint?",
    VERSION_TABLE: "version_num varchar(32) key",
}
TABLE_NAMES = tuple(_COLUMNS)  # without a prefix


def columns_of(table: str) -> list[dict[str, Any]]:
    """List the columns of a table of the catalog, as a template takes them; a moment's type is the engine's to say."""
    described = (column.split() for column in _COLUMNS[table].split(","))
    return [
        {
            "name": Identifier(name),
            "type": None if kind.startswith("moment") else Markup(kind.removesuffix("?").upper()),
            "is_required": not kind.endswith("?"),
            "is_key": bool(key),
        }
        for name, kind, *key in described
    ]


def tables_named(prefix: str = "") -> dict[str, Relation]:
    """Name the tables of a catalog whose names begin with `prefix`."""
    return {table: Relation(prefix + table) for table in TABLE_NAMES}
