"""Questions about a metastore of Spark: its settings, schemas, tables and views."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Any

from sqlanon.engines.dialects import CAPABLE, Capability
from sqlanon.engines.spark.errors import condition_of, names_nothing, statement_error
from sqlanon.errors import EngineError
from sqlanon.sql import Identifier, Relation

if TYPE_CHECKING:
    from sqlanon.engines.base import Engine

OWN_CATALOG = "spark_catalog"
_DETAILS = "# Detailed Table Information"  # the line after which properties follow the columns
_UNDEFINED = "<undefined>"
_BUILT_IN = (_UNDEFINED, "builtin")
_ATOMIC_FORMATS = {
    "org.apache.spark.sql.delta.catalog.DeltaCatalog": "delta",
    "org.apache.iceberg.spark.SparkCatalog": "iceberg",
    "org.apache.iceberg.spark.SparkSessionCatalog": "iceberg",
}
"""The classes of catalogs in which a table is replaced in one step, with the format of their tables."""
_FORGETS = Capability(
    "the catalog of this session with Spark is in memory, and forgets its tables when Spark ends; name a catalog that"
    " stays (spark.sql.catalogImplementation=hive in the URL), or release a file."
)


@dataclass(frozen=True)
class CatalogKind:
    """A catalog, as publishing sees it.

    atomic_format: of tables that the catalog replaces in one step; None where releases are views over versions.
    releases: whether releases can be there at all.
    """

    atomic_format: str | None = None
    releases: Capability = CAPABLE


class Metastore:
    """The metastore that a session with Spark reaches."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def setting(self, name: str) -> str | None:
        """Look up a setting of the session, without a statement; None where it has no value."""
        try:
            value = self._engine.driver_connection.conf.get(name, None)
        except Exception as error:  # of py4j or grpc, where the connection is lost
            raise statement_error(error, "engine/get_setting") from error
        return None if value is None else str(value)

    def kind_of(self, catalog: str) -> CatalogKind:
        """Tell how releases are published in a catalog."""
        made_by = self.setting(f"spark.sql.catalog.{catalog}") or _UNDEFINED
        if made_by in _ATOMIC_FORMATS:
            return CatalogKind(atomic_format=_ATOMIC_FORMATS[made_by])
        if catalog != OWN_CATALOG or made_by not in _BUILT_IN:
            return CatalogKind(releases=_not_supported(catalog, made_by))
        is_kept = self.setting("spark.sql.catalogImplementation") == "hive"
        return CatalogKind(releases=CAPABLE if is_kept else _FORGETS)

    def has_schema(self, schema: Relation) -> bool:
        """Tell whether there is a schema."""
        return self._describe_schema(schema) is not None

    def location_of_schema(self, schema: Relation) -> str | None:
        """Look up the directory of a schema, spelled in one way; None where there is no schema."""
        described = self._describe_schema(schema)
        return None if described is None else _spelled_once(described.get("Location", ""))

    def _describe_schema(self, schema: Relation) -> dict[str, str] | None:
        try:
            lines = self._engine.query_there("work/publish/describe_schema", schema=schema)
        except EngineError as error:
            if names_nothing(error):
                return None
            raise
        return {str(name): str(value) for name, value in lines}

    def describe(self, relation: Relation) -> dict[str, Any] | None:
        """Describe a table or view as Spark's JSON does; None where there is none."""
        try:
            ((text,),) = self._engine.query_there("engines/describe_relation", relation=relation)
        except EngineError as error:
            if names_nothing(error):
                return None
            if condition_of(error.__cause__ or error).startswith("NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"):
                return self._describe_by_lines(relation)
            raise
        described: dict[str, Any] = json.loads(text)
        return described

    def _describe_by_lines(self, relation: Relation) -> dict[str, Any] | None:
        """Describe a table of a catalog that Spark makes no JSON of, such as one of Iceberg; no comments."""
        lines = self._lines(relation)
        if lines is None:
            return None
        columns = takewhile(lambda line: line[0], lines)
        home = self._engine.home()
        return {
            "table_name": relation.name,
            "namespace": [relation.schema or home.schema],
            "catalog_name": relation.catalog or home.catalog,
            "type": dict(lines).get("Type", "MANAGED"),
            "columns": [{"name": name, "type": _type_of(spelled)} for name, spelled in columns],
        }

    def location_of(self, relation: Relation) -> str | None:
        """Look up the directory of a table's files, spelled in one way; None where there is none, as of a view."""
        lines = dropwhile(lambda line: line[0] != _DETAILS, self._lines(relation) or [])
        return _spelled_once(dict(lines).get("Location", ""))

    def format_of(self, relation: Relation) -> str | None:
        """Look up the format of a table of any catalog, empty where it has none; None where there is no table."""
        lines = self._lines(relation)
        if lines is None:
            return None
        known = dict(lines)
        return "" if known.get("Type") == "VIEW" else known.get("Provider", "").lower()

    def _lines(self, relation: Relation) -> list[tuple[str, str]] | None:
        try:
            lines = self._engine.query_there("engines/describe_columns", relation=relation)
        except EngineError as error:
            if names_nothing(error):
                return None
            raise
        return [(str(name), str(value)) for name, value, _ in lines]


def _spelled_once(location: str) -> str | None:
    return re.sub(r"^(\w+):/+", r"\1:/", location).rstrip("/") or None


def _type_of(spelled: str) -> dict[str, Any]:
    """Take a type such as `decimal(10,2)` apart, as JSON has it."""
    name = re.match(r"\w+", spelled)
    known: dict[str, Any] = {"name": name[0] if name else spelled}
    if known["name"] == "timestamp":
        known["name"] = "timestamp_ltz"
    if digits := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", spelled):
        known |= {"precision": int(digits[1]), "scale": int(digits[2])}
    if collated := re.fullmatch(r"string collate (\w+)", spelled):
        known["collation"] = collated[1]
    return known


def _not_supported(catalog: str, made_by: str) -> Capability:
    return Capability(
        f"releases can't be in the catalog {Identifier(catalog)} ({made_by.rpartition('.')[2]}), of which it is not"
        " known whether a table is replaced in one step; choose another catalog, or release a file."
    )
