"""Dry sessions of Spark: the place of each statement follows from what those before would have made."""

from __future__ import annotations

import json
import pickle
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlanon.engines.dry_session import DrySession, UnsentStatement
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.unplaced import Place, PlacesRenderer
from sqlanon.engines.spark.work_tables import WorkTables, comes_home, creates, named_in, written_by
from sqlanon.sql import Identifier, Relation, Statement, Text

if TYPE_CHECKING:
    from sqlanon.engines.base import Engine
    from sqlanon.engines.columns import Column
    from sqlanon.engines.dry_session import Columns

_T = TypeVar("_T")
_AT_HOME, _BY_SPARK = "At home, in the driver's DuckDB.", "By Spark."
_COMES_HOME = "By Spark; the result is kept at home, in the driver's DuckDB."
_DROPPED = "Wherever the tables are."
_HOLDS_ROWS = re.compile(r"\bp0\b")  # the first word of coded rows, among the columns of a table that is made
_DROPS = ("drop_table", "drop_tables")


class SparkDrySession(DrySession):
    """See the module.

    tables: of the session, of which nothing but the places of work tables is changed.
    is_local: whether a run keeps its work tables in a private directory of this machine.
    """

    def __init__(self, tables: WorkTables, renderer: PlacesRenderer, *, is_local: bool) -> None:
        self._tables = tables
        self._renderer = renderer
        self._is_local = is_local

    def written(self, statement: Statement) -> UnsentStatement:
        text = self._renderer.names_in(statement)
        if statement.name.endswith(_DROPS):
            dropped = Statement(statement.name, self._renderer.text_at(Place.SPARK, statement))
            for name in named_in(dropped.text):
                self._tables.forget(name)
            return UnsentStatement(dropped.name, dropped.text, dropped, _DROPPED, values=statement.values)
        place = self._tables.place_of(statement.name, text)
        if self._renderer.lacks(statement, place):  # a question that a dry run answers by itself
            finished = Statement(statement.name, text)
        else:
            finished = self._renderer.finished(statement, place)
        made = written_by(text)
        kept_home = made is not None and creates(text) and place is Place.SPARK and comes_home(statement.name)
        if made is not None:
            self._tables.note_written(made, Place.HOME if kept_home else place)
        if place is Place.HOME:
            return UnsentStatement(finished.name, finished.text, finished, _AT_HOME, values=statement.values)
        return self._sent(replace(finished, values=statement.values), _COMES_HOME if kept_home else _BY_SPARK)

    def written_there(self, statement: Statement) -> UnsentStatement:
        return self._sent(statement, _BY_SPARK)

    def _sent(self, statement: Statement, place: str) -> UnsentStatement:
        sent = Statement(statement.name, self._tables.text_for_spark(statement.text))
        return UnsentStatement(statement.name, statement.text, sent, place, values=statement.values)

    def describe(
        self, statement: Statement, made: Iterable[Relation], columns: Columns
    ) -> list[tuple[Any, ...]] | None:
        if statement.name != "engines/describe_relation":
            return None
        known = next((one for one in made if str(one) in statement.text), None)
        return None if known is None else [(json.dumps(_described(known, columns(known))),)]

    def view_files(self, view: Relation, path: str) -> UnsentStatement:
        form, options = Identifier("parquet"), [(Text("path"), Text(path))]
        return self.written_there(SparkSQL.renderer()("engines/view_files", view=view, format=form, options=options))

    def prepare_work(self, schema: str) -> list[UnsentStatement]:
        if self._is_local:
            return []
        self._tables.schema = schema
        return [self.written_there(SparkSQL.renderer()("catalog/create_schema", schema=Relation(schema)))]

    @property
    def work_directories(self) -> tuple[Path, ...]:
        return (Path(tempfile.gettempdir(), "sqlanon-spill-0-private"),) if self._is_local else ()

    def session_there(self) -> Engine:
        return DuckDBEngine.connect(MEMORY_URL, EngineOptions())

    def taken_there(self, work: Callable[[Engine], _T]) -> Callable[[Engine], _T]:
        from sqlanon.engines.spark.executors import pickled  # here, as it takes the extra

        taken: Callable[[Engine], _T] = pickle.loads(pickled(work))
        return taken

    def receive(self, made: Sequence[Statement]) -> None:
        for one in made:
            if (name := written_by(one.text)) is not None:
                self._tables.note_written(
                    name, Place.SPARK if _HOLDS_ROWS.search(one.text.partition("\nFROM")[0]) else Place.HOME
                )


def _described(relation: Relation, columns: Iterable[Column]) -> dict[str, Any]:
    """Describe a table that would have been made, as Spark's JSON does, as far as publishing asks for it."""
    return {
        "table_name": relation.name,
        "type": "MANAGED",
        "columns": [{"name": column.name, "type": {"name": column.type.lower()}} for column in columns],
    }
