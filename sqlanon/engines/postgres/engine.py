"""The PostgreSQL adapter, on psycopg 3: generated SQL goes to the server as it is, with no parameter style."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import itertools
import os
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from sqlanon.engines.base import Engine, RelationType
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.postgres.dialect import USUAL_LOCK_TIMEOUT, USUAL_WORK_MEM, PostgreSQL, session_settings
from sqlanon.engines.postgres.dry_session import PostgresDrySession
from sqlanon.engines.postgres.errors import connection_error, lock_error, read_only_error, statement_error
from sqlanon.engines.postgres.private_values import Private
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.statements import Boundary
from sqlanon.engines.urls import redacted
from sqlanon.errors import AccessError, Cancelled, EngineError, PolicyError, SqlanonError
from sqlanon.sql import Identifier, Relation, Statement, Text, Unquoted, macro

OLDEST_SERVER = 14
MOST_SESSIONS = 4  # of one search
_CONNECTION_DEFAULTS = {"keepalives_idle": "60", "keepalives_interval": "10", "keepalives_count": "3"}
_CONNECT_TIMEOUT = "15"  # seconds
_CANCEL_TIMEOUT = 5.0  # seconds
_CHUNK = 1 << 20  # bytes

# citext is OTHER: its values are equal though their texts differ, so no text of a class is the right one; so is any
# text with a collation that is not deterministic.
# timetz and money are OTHER: their order or text depends on settings of the server.
_KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), Kind.INTEGER),
    **dict.fromkeys(("float4", "float8"), Kind.FLOAT),
    **dict.fromkeys(("text", "varchar", "bpchar", "name"), Kind.TEXT),
    "numeric": Kind.DECIMAL,
    "bool": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMPTZ,
    "time": Kind.TIME,
    "uuid": Kind.UUID,
}
_RELATION_TYPES = {
    "r": RelationType.TABLE,
    "v": RelationType.VIEW,
    "m": RelationType.MATERIALIZED_VIEW,
    "p": RelationType.PARTITIONED_TABLE,
    "f": RelationType.FOREIGN_TABLE,
}


class PostgresEngine(Engine):
    """One session with a PostgreSQL server, version 14 or newer."""

    traits = PostgreSQL

    def __init__(self, url: str, options: EngineOptions, read_only: bool = False) -> None:
        self._url = url
        self.limits = options
        self._read_only = read_only
        self.parallel_sessions = MOST_SESSIONS if options.threads is None else min(MOST_SESSIONS, options.threads)
        settings = session_settings(options, read_only)
        self._connection = _open(url)
        self._private = Private(self._connection)
        try:
            self._check_version()
            self._path = self._narrow_path()
            self._apply(settings)
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def connect(
        cls,
        url: str,
        options: EngineOptions | None = None,
        *,
        read_only: bool = False,
        create: bool = False,  # noqa: ARG003
    ) -> PostgresEngine:
        """Connect as libpq does: parts the URL lacks come from the environment, `.pgpass` and the service file.

        `create` has no meaning here: a database is made by its administrator.
        """
        return cls(url, options or EngineOptions(), read_only)

    def _check_version(self) -> None:
        version = self._connection.info.server_version
        if version < OLDEST_SERVER * 10_000:
            raise EngineError(f"PostgreSQL {version // 10_000} is too old; {OLDEST_SERVER} or newer is needed.")

    def _narrow_path(self) -> list[Text]:
        """The session's search path, of which only schemas stay that nobody else can put functions into.

        Tables are found on all of it still, by names that every statement then gives in full.
        """
        path = [Text(name) for (name,) in self.query("engines/show_search_path")]
        self.run("engines/set_search_path", schemas=())
        if path:
            trusted = self.query("engines/list_trusted_schemas", schemas=macro("values.array", path))
            self.run("engines/set_search_path", schemas=[Identifier(name) for (name,) in trusted])
        return path

    def _apply(self, settings: dict[str, str]) -> None:
        pairs = [(Text(name), Text(value)) for name, value in settings.items()]
        self._opening = [
            self.render("engines/apply_settings", settings=pairs),
            self.render("engines/limit_lock_waits", usual=Text(USUAL_LOCK_TIMEOUT)),
        ]
        for statement in self._opening:
            self.fetch(statement)
        # A server on a platform that can't notice a lost client refuses any value but 0.
        with contextlib.suppress(psycopg.errors.InvalidParameterValue):
            name, value = Identifier("client_connection_check_interval"), Text("2s")
            self._connection.execute(self.render("engines/set_setting", name=name, value=value).text.encode())
        if self.limits.memory_limit is None:
            self.query("engines/raise_work_mem", least=Text(USUAL_WORK_MEM))

    @property
    def driver_connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        return self._connection

    @property
    def text_encoding(self) -> str:
        """The codec of the server's encoding; ASCII, which is a part of each, where Python has none of that name."""
        name = (self._connection.info.parameter_status("server_encoding") or "").lower()
        try:
            return codecs.lookup(re.sub("^win", "cp", name)).name
        except LookupError:
            return "ascii"

    @property
    def version(self) -> str:
        number = self._connection.info.server_version
        return f"PostgreSQL {number // 10_000}.{number % 10_000}"

    def opening(self) -> list[Statement]:
        return self._opening

    def require_writable(self) -> None:
        is_read_only, is_standby = self.query_one("engines/show_read_only")
        if is_read_only:
            raise read_only_error(is_standby)

    def _fork(self) -> PostgresEngine:
        """A second connection of the same role. Several work side by side, so none takes parallel workers as well."""
        return type(self)(self._url, dataclasses.replace(self.limits, threads=1), self._read_only)

    def close(self) -> None:
        self._connection.close()

    # --- statements

    def _execute(self, statement: Statement) -> int:
        with self._guarded(statement.name, statement.text):
            return self._connection.execute(self._private.written(statement).encode()).rowcount

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        with self._guarded(statement.name, statement.text):
            return self._connection.execute(self._private.written(statement).encode()).fetchall()

    def _fetch_blocks(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """Stream rows as the server sends them: a query with a cursor of the server would have no parallel plan."""
        rows = self._connection.cursor().stream(self._private.written(statement).encode())
        try:
            while block := self._next_block(statement.name, rows, size):
                yield block
        finally:
            with self._guarded(statement.name, statement.text):
                deque(rows, maxlen=0)  # those that nobody took would be in the way of the next statement

    def _next_block(self, name: str, rows: Iterator[tuple[Any, ...]], size: int) -> list[tuple[Any, ...]]:
        with self._guarded(name):
            return list(itertools.islice(rows, size))

    def execute_privately(self, statement: Statement) -> None:
        started = time.perf_counter()
        with self._guarded(statement.name, statement.text):
            self._private.execute(statement)
        self._tell(statement, started, -1)

    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows through COPY."""
        statement = self.insertion(table, columns)
        copying = self._connection.cursor().copy(statement.text.encode())
        with self._guarded(statement.name, statement.text), copying as copy:
            for row in rows:
                copy.write_row(row)

    def copy_to(self, path: Path, statement: Statement) -> None:
        """Run a COPY to STDOUT, which goes to the file."""
        with path.open("wb") as file, self._copying(statement) as copy:
            for block in copy:
                file.write(bytes(block))

    def copy_from(self, path: Path, statement: Statement) -> None:
        """Run a COPY from STDIN, which comes from the file."""
        with path.open("rb") as file, self._copying(statement) as copy:
            while block := file.read(_CHUNK):
                copy.write(block)

    @contextlib.contextmanager
    def _copying(self, statement: Statement) -> Iterator[psycopg.Copy]:
        """Run a COPY whose rows pass through inside."""
        started = time.perf_counter()
        cursor = self._connection.cursor()
        with self._guarded(statement.name, statement.text), cursor.copy(statement.text.encode()) as copy:
            yield copy
        self._tell(statement, started, cursor.rowcount)

    @contextlib.contextmanager
    def grouping_by_hash(self) -> Iterator[None]:
        """Several columns are taken for nearly as many groups as rows; what a hash has no room for is spilled.

        After an error sorts stay as dear as they are made here, which costs time alone.
        """
        self.run("engines/set_setting", name=Identifier("enable_sort"), value=Text("off"))
        yield
        self.run("engines/set_setting", name=Identifier("enable_sort"), value=Text("on"))

    @contextlib.contextmanager
    def _guarded(self, name: str, text: str = "") -> Iterator[None]:
        """Errors as ours. On Ctrl-C psycopg cancels the server's query before it lets the interrupt through.

        text: of the statement, by whose names the holder of a lock is found.
        """
        try:
            yield
        except psycopg.errors.LockNotAvailable as error:
            raise lock_error(name, self._lock_holders(text)) from error
        except psycopg.Error as error:
            raise statement_error(error, name, is_broken=self._connection.broken) from None
        except KeyboardInterrupt:
            raise Cancelled("Interrupted.") from None
        except Exception:  # of the code that makes the rows
            raise
        except BaseException:  # raised by a signal's handler, for one: the statement must not run on
            self.cancel()
            self.close()
            raise

    def _lock_holders(self, text: str) -> str | None:
        """Find who holds what a failed statement waited for, by another session, as this one's transaction is void."""
        with contextlib.suppress(SqlanonError), contextlib.closing(self.fork()) as session:
            pid = self._connection.info.backend_pid
            return session.query_one("engines/find_lock_holders", pid=pid, statement=Text(text))[0] or None
        return None

    def cancel(self) -> None:
        if self._connection.closed:
            return
        with self._guarded("cancel"):
            self._connection.cancel_safe(timeout=_CANCEL_TIMEOUT)

    @property
    def in_transaction(self) -> bool:
        return self._connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    def begin(self) -> None:
        """Start a transaction; its snapshot is that of the first statement inside."""
        self._control("begin")

    def commit(self) -> None:
        self._control("commit")

    def rollback(self) -> None:
        if self._connection.closed:  # the server has rolled back when it lost us
            return
        self._private.forget()
        self._control("rollback")

    def _control(self, boundary: Boundary) -> None:
        """Begin or end a transaction, which is no statement of the run's own."""
        with self._guarded(boundary):
            self._connection.execute(self.boundary(boundary).text.encode())

    def lock_statement(self, name: str, key: int) -> Statement | None:  # noqa: ARG002 - its key stands for it
        return self.render("catalog/take_lock", key=key)

    def unlock_statement(self, name: str, key: int) -> Statement | None:  # noqa: ARG002 - its key stands for it
        return self.render("catalog/give_lock_back", key=key)

    # --- what is there

    def prepare_work(self, schema: str) -> tuple[Path, ...]:
        """Make the schema of work tables if there is none; ask first, as a role may use one that it couldn't make."""
        if not self.query("work/publish/describe_schema", schema=Text(schema)):
            self.run("catalog/create_schema", schema=Relation(schema))
        readers = [reader for (reader,) in self.query("catalog/list_default_readers", schema=Text(schema))]
        if readers:
            name = Identifier(schema)
            raise AccessError(
                f"Default privileges would let {', '.join(readers)} read the work tables in schema {name}, which hold"
                " raw values. REVOKE USAGE on that schema, or name one that others can't use in the policy"
                " (catalog: {schema: ...})."
            )
        return ()

    def analyze(self, *tables: Relation, columns: Sequence[Identifier] = ()) -> None:
        if tables:
            self.run("engines/analyze_tables", tables=tables, columns=columns)

    def resolve(self, relation: Relation) -> Relation | None:
        """The name as stored: parts without quotes in lower case, as PostgreSQL folds them, or as they are written.

        Without a schema, those of the search path that the role and the database have set are looked through in order.
        """
        known = list(dict.fromkeys(filter(None, map(self._find, _spellings(relation)))))
        if len(known) > 1:
            names = " and ".join(map(str, known))
            raise PolicyError(
                f"'{'.'.join(relation.parts)}' can mean {names}, as SQL folds names without quotes to lower case: write"
                " the one that is meant in quotes."
            )
        return known[0] if known else None

    def _find(self, relation: Relation) -> Relation | None:
        if relation.catalog is not None and (relation.catalog,) != self.query_one("engines/get_database"):
            return None
        name = Text(relation.name)
        if relation.schema is None:
            rows = self.query("engines/find_relation_on_path", schemas=self._path, name=name)
        else:
            rows = self.query("engines/find_relation", schema=Text(relation.schema), name=name)
        return Relation(rows[0][1], rows[0][0]) if rows else None

    def home(self) -> Relation:
        return Relation("", self._path[0].value if self._path else None)

    def relations(self) -> list[Relation]:
        return [Relation(name, schema) for schema, name in self.query("engines/list_relations")]

    def relation_type(self, relation: Relation) -> RelationType:
        known = self._known(relation)
        ((letter,),) = self.query("engines/get_relation_type", schema=Text(known.schema or ""), name=Text(known.name))
        return _RELATION_TYPES[letter]

    def columns(self, relation: Relation) -> list[Column]:
        rows = self._column_rows(relation) if relation.catalog is None and relation.schema is not None else []
        rows = rows or self._column_rows(self._known(relation))
        return [
            Column(name, shown, Kind.OTHER if is_lax else _kind_of(base, letter), nullable, compares)
            for name, shown, base, letter, nullable, is_lax, compares in rows
        ]

    def _column_rows(self, known: Relation) -> list[tuple[Any, ...]]:
        return self.query("engines/list_columns", schema=Text(known.schema or ""), name=Text(known.name))

    def unique_columns(self, relation: Relation) -> frozenset[str]:
        names = self.query("engines/list_unique_columns", table=Text(str(self._known(relation))))
        return frozenset(name for (name,) in names)

    def unreadable_columns(self, relation: Relation) -> frozenset[str]:
        names = self.query("engines/list_unreadable_columns", table=Text(str(self._known(relation))))
        return frozenset(name for (name,) in names)

    def code_of_others(self, relation: Relation) -> list[str]:
        problems = self.query("engines/list_code_of_others", table=Text(str(relation)))
        return list(dict.fromkeys(problem for (problem,) in problems))

    def owner_of(self, relation: Relation) -> str | None:
        _, owner = self.query_one("engines/show_owner", table=Text(str(relation)))
        return str(owner)

    def object_of(self, relation: Relation) -> str | None:
        return "/".join(self.query_one("engines/show_object", **_place(relation)))

    def definition_of(self, relation: Relation) -> str | None:
        queries = self.query("engines/show_definition", **_place(relation))
        return str(queries[0][0]) if queries else None

    def parent_of(self, relation: Relation) -> Relation | None:
        parents = self.query("engines/show_parent", **_place(relation))
        return next((Relation(name, schema) for schema, name in parents), None)

    def dry_session(self) -> PostgresDrySession:
        return PostgresDrySession(self)

    def hold(self, relation: Relation) -> None:
        """Lock it as a query does while it is parsed: LOCK TABLE would take a privilege on the whole table."""
        self.run("engines/prepare_holding", relation=relation)
        self.run("engines/end_holding")

    def reads(self, relation: Relation, table: Relation) -> bool:
        names = {"relation": Text(str(relation)), "table": Text(str(table))}
        (reads,) = self.query_one("engines/reads_table", **names)
        return bool(reads)

    def sharing(self, relation: Relation) -> list[Relation]:
        rows = self.query("engines/list_sharing_tables", **_place(relation))
        return [Relation(name, schema) for schema, name in rows]

    def _known(self, relation: Relation) -> Relation:
        known = self.resolve(relation)
        if known is None:
            raise PolicyError(f"There is no table {relation}.")
        return known


def _place(relation: Relation) -> dict[str, Text]:
    """Name a resolved relation as the database's catalog does, where no privilege on its schema is asked for."""
    return {"schema": Text(relation.schema or ""), "name": Text(relation.name)}


def _kind_of(base: str, letter: str) -> Kind:
    """The kind of a type, by its name and pg_type's letter for what it is."""
    return Kind.ENUM if letter == "e" else _KINDS.get(base, Kind.OTHER)


def _open(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    libpq_url = "postgresql://" + url.partition("://")[2]
    try:
        given = conninfo_to_dict(libpq_url)
    except (psycopg.ProgrammingError, UnicodeEncodeError):  # its message may quote the password
        raise PolicyError(
            f"The URL {redacted(url)} can't be read; write special characters of its parts as %XX (a space is %20)."
        ) from None
    defaults = dict(_CONNECTION_DEFAULTS)
    if "PGCONNECT_TIMEOUT" not in os.environ:
        defaults["connect_timeout"] = _CONNECT_TIMEOUT
    fixed = {"application_name": "sqlanon", "client_encoding": "UTF8"}
    conninfo = make_conninfo("", **{**defaults, **given, **fixed})
    try:
        return psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise connection_error(error, url, given.get("password")) from None
    except KeyboardInterrupt:
        raise Cancelled("Interrupted.") from None


def _spellings(relation: Relation) -> list[Relation]:
    """List what a name can mean: parts without quotes folded, or as written, as earlier versions took them."""

    def spell(part: str | None) -> dict[str | None, None]:
        spelt = (PostgreSQL.unquoted(part), str(part)) if isinstance(part, Unquoted) else (part,)
        return dict.fromkeys(spelt)

    return [
        Relation(name or "", schema, catalog)
        for catalog in spell(relation.catalog)
        for schema in spell(relation.schema)
        for name in spell(relation.name)
    ]
