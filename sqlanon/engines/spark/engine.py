"""The Spark adapter, over the DataFrame-free part of PySpark that classic sessions and Connect share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlanon.engines.base import Column, Engine, EngineOptions, Kind, RelationType
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.errors import statement_error
from sqlanon.engines.spark.metastore import OWN_CATALOG, Metastore
from sqlanon.engines.spark.session import close_session, open_session
from sqlanon.engines.spark.urls import SparkAddress, address_of
from sqlanon.engines.worker import StatementWorker
from sqlanon.errors import EngineError, PolicyError, SqlanonError
from sqlanon.sql import Identifier, Relation, Statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")
_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double"), Kind.FLOAT),
    **dict.fromkeys(("string", "varchar", "char"), Kind.TEXT),
    "decimal": Kind.DECIMAL,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp_ntz": Kind.TIMESTAMP,
    "timestamp_ltz": Kind.TIMESTAMPTZ,
}
_BY_BYTES = "UTF8_BINARY"  # the collation by which different texts are different


class SparkEngine(Engine):
    """One session with Spark, for reading only.

    There are no transactions: each statement sees the tables as they are when it starts.
    """

    traits = SparkSQL
    parallel_sessions = 1

    def __init__(self, address: SparkAddress, options: EngineOptions) -> None:
        self._address = address
        self._options = options
        self._session: SparkSession = open_session(address)
        self._worker = StatementWorker("spark", options.statement_timeout, self.cancel)

    @classmethod
    def connect(
        cls, url: str, options: EngineOptions | None = None, *, read_only: bool = False, create: bool = False
    ) -> SparkEngine:
        """Open a session for reading: `read_only` and `create` change nothing.

        Raises PolicyError for limits that are the cluster's, AccessError where there is no Spark.
        """
        del read_only, create
        address, options = address_of(url), options or EngineOptions()
        if options.memory_limit or options.threads or options.temp_directory:
            raise PolicyError(
                "Spark has its own limits of memory, threads and disk; give its settings in the URL, such as"
                " spark+local://2?spark.driver.memory=4g."
            )
        return cls(address, options)

    @property
    def driver_connection(self) -> SparkSession:
        return self._session

    @property
    def version(self) -> str:
        return f"Spark {self._session.version}"

    def _fork(self) -> SparkEngine:
        return SparkEngine(self._address, self._options)

    def close(self) -> None:
        """End the session; with the last one the JVM that the program started."""
        if self._worker.close():
            close_session(self._session)

    # --- statements

    def _execute(self, statement: Statement) -> int:
        self._fetch(statement)
        return -1

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        return self._guarded(
            statement.name, lambda: [tuple(row) for row in self._session.sql(statement.text).collect()]
        )

    def run_there(self, template: str, **values: Any) -> None:
        """Run a statement by Spark itself, whatever tables it names."""
        super().execute(SparkSQL.renderer()(template, **values))

    def query_there(self, template: str, **values: Any) -> list[tuple[Any, ...]]:
        """Fetch the rows of a query by Spark itself."""
        return super().fetch(SparkSQL.renderer()(template, **values))

    def _guarded(self, name: str, work: Callable[[], _T]) -> _T:
        """Run `work` on the worker's thread, and explain an error of Spark."""
        try:
            return self._worker.run(work)
        except SqlanonError:
            raise
        except Exception as error:  # of pyspark, py4j or grpc, which share no class
            raise statement_error(error, name) from error

    def cancel(self) -> None:
        self._session.interruptAll()  # of this session, which is nobody else's

    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Load nothing: the session is for reading alone."""
        del columns, rows
        raise EngineError(f"The session with Spark is for reading alone; {table} was not filled.")

    def begin(self) -> None:
        """Begin nothing: there are no transactions, and nothing is written."""

    def commit(self) -> None:
        """Keep nothing, as nothing was written."""

    def rollback(self) -> None:
        """Undo nothing, as nothing was written."""

    # --- what is there

    def resolve(self, relation: Relation) -> Relation | None:
        """The name by which Spark keeps a relation, which ignores case: its own temporary views go first."""
        known = Metastore(self).describe(relation)
        if known is None:
            return None
        named = Relation(known["table_name"], known["namespace"][-1], known["catalog_name"])
        # The session's own catalog keeps names in lower case, and answers with the spelling that it was asked by.
        return Relation(*map(str.lower, reversed(named.parts))) if named.catalog == OWN_CATALOG else named

    def home(self) -> Relation:
        catalog, schema = self.query_one("engine/locate_schema")
        return Relation("", schema, catalog)

    def relations(self) -> list[Relation]:
        catalog = self.home().catalog
        return [
            Relation(name, schema, catalog)
            for (at,) in self.query("engine/list_schemas")
            for schema, name, is_temporary in self.query("engine/list_relations", schema=Identifier(at))
            if not is_temporary
        ]

    def relation_type(self, relation: Relation) -> RelationType:
        return RelationType.VIEW if self._known(relation)["type"] == "VIEW" else RelationType.TABLE

    def columns(self, relation: Relation) -> list[Column]:
        return [column_of(column) for column in self._known(relation)["columns"]]

    def unique_columns(self, relation: Relation) -> frozenset[str]:
        """None: constraints of Spark's tables are not enforced."""
        del relation
        return frozenset()

    def reads(self, relation: Relation, table: Relation) -> bool:
        """Tell it by the analyzed plan, which names every table that a view reads."""
        (plan,) = self.query_one("engine/explain_relation", relation=relation)
        named = f"SubqueryAlias {'.'.join(table.parts)}".lower()
        return any(line.strip(" +-:").lower() == named for line in plan.splitlines())

    def _known(self, relation: Relation) -> dict[str, Any]:
        known = Metastore(self).describe(relation)
        if known is None:
            raise PolicyError(f"There is no table {relation}.")
        return known


def column_of(described: dict[str, Any]) -> Column:
    """Read a column as `DESCRIBE … AS JSON` tells it; nested types, and texts of a lax collation, are OTHER."""
    kind_name: str = described["type"]["name"]
    kind = _KINDS.get(kind_name, Kind.OTHER)
    if kind is Kind.TEXT and described["type"].get("collation", _BY_BYTES) != _BY_BYTES:
        kind = Kind.OTHER
    spelled = kind_name
    if kind is Kind.DECIMAL:
        spelled = f"decimal({described['type']['precision']},{described['type']['scale']})"
    return Column(described["name"], spelled, kind, described.get("nullable", True), compares=kind_name != "map")
