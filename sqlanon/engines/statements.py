"""Statements of a session: rendered, run and fetched, alone or in transactions, with a listener who is told of each."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from sqlanon.engines.dialects import Dialect
from sqlanon.sql import Identifier, Relation, Renderer, Statement

BLOCK = 100_000  # rows that are fetched at a time where there may be many

StatementListener = Callable[[Statement, float, int], None]
"""Called after each statement with the statement, its seconds, and its row count (-1 where unknown)."""


Boundary = Literal["begin", "commit", "rollback"]


class Statements(ABC):
    """The statements of one session. They run in autocommit unless inside `transaction()`."""

    traits: type[Dialect]
    """The properties of this engine's databases."""

    listener: StatementListener | None = None

    @property
    def render(self) -> Renderer:
        """The renderer of this engine's dialect."""
        return self.traits.renderer()

    def execute(self, statement: Statement) -> int:
        """Run a statement; the number of rows it wrote, or -1 where the driver does not say."""
        started = time.perf_counter()
        rows = self._execute(statement)
        self._tell(statement, started, rows)
        return rows

    def execute_privately(self, statement: Statement) -> None:
        """Run a statement whose text holds values of the data, so that no log of a server shows it."""
        self.execute(statement)

    def fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Run a query and return its rows; for aggregates and other small results only."""
        started = time.perf_counter()
        rows = self._fetch(statement)
        self._tell(statement, started, len(rows))
        return rows

    def fetch_blocks(self, statement: Statement, size: int = BLOCK) -> Iterator[list[tuple[Any, ...]]]:
        """Run a query and yield its rows in blocks of at most `size`, one of which is in memory at a time.

        No other statement may be run before the last block was taken.
        """
        started, rows = time.perf_counter(), 0
        for block in self._fetch_blocks(statement, size):
            rows += len(block)
            yield block
        self._tell(statement, started, rows)

    def fetch_one(self, statement: Statement) -> tuple[Any, ...]:
        """The single row of a query."""
        (row,) = self.fetch(statement)
        return row

    def run(self, template: str, **values: Any) -> int:
        """Render `template` and execute it."""
        return self.execute(self.render(template, **values))

    def query(self, template: str, **values: Any) -> list[tuple[Any, ...]]:
        """Render `template` and fetch its rows."""
        return self.fetch(self.render(template, **values))

    def query_one(self, template: str, **values: Any) -> tuple[Any, ...]:
        """Render `template` and fetch its single row."""
        return self.fetch_one(self.render(template, **values))

    def insertion(self, table: Relation, columns: Sequence[str]) -> Statement:
        """Write the statement by which rows of the program, with these columns, are inserted into a table."""
        return self.render("engines/insert_rows", table=table, columns=tuple(map(Identifier, columns)))

    def boundary(self, of_transaction: Boundary) -> Statement:
        """Write the statement that begins or ends a transaction."""
        return self.render(f"engines/{of_transaction}")

    def text_for_others(self, statement: Statement) -> str:
        """Write a statement as a session that is not the program's takes it."""
        return self.traits.text_for_others(statement.text)

    def run_there(self, template: str, **values: Any) -> None:
        """Run a statement by the database that holds the rows, whatever tables it names; by default that of `run`."""
        self.run(template, **values)

    def query_there(self, template: str, **values: Any) -> list[tuple[Any, ...]]:
        """Fetch the rows of a query by the database that holds the rows; by default that of `query`."""
        return self.query(template, **values)

    def query_each(
        self, template: str, questions: Sequence[Mapping[str, Any]], at_once: int = 1
    ) -> list[list[tuple[Any, ...]]]:
        """Render `template` for each of some questions about tables that stay as they are, and fetch the rows of each.

        Each is a statement of its own, so that one needs memory at a time, but for engines whose statements are dear
        (`asked_together`). The rows of a question come in no order.

        at_once: so many are asked together by every engine, as they need little memory.
        """
        at_once = max(at_once, self.traits.asked_together)
        if at_once == 1:
            return [self.query(template, **values) for values in questions]
        portions = (questions[start : start + at_once] for start in range(0, len(questions), at_once))
        return [rows for portion in portions for rows in self._ask_together(template, portion)]

    def _ask_together(self, template: str, questions: Sequence[Mapping[str, Any]]) -> list[list[tuple[Any, ...]]]:
        """Ask questions by one statement, which goes by the name of the template of each."""
        queries = [self.render(template, **values) for values in questions]
        answers: list[list[tuple[Any, ...]]] = [[] for _ in questions]
        for place, *row in self.fetch(self.render("engines/ask_together", queries=queries).called(template)):
            answers[place].append(tuple(row))
        return answers

    def _tell(self, statement: Statement, started: float, rows: int) -> None:
        if self.listener is not None:
            self.listener(statement, time.perf_counter() - started, rows)

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        """All statements inside see one snapshot of the database and take effect together or not at all."""
        return self._begun(self.commit)

    def undone(self) -> contextlib.AbstractContextManager[None]:
        """Undo at the end whatever is made inside; within a transaction it is undone or kept with that."""
        return self._begun(self.rollback)

    @contextlib.contextmanager
    def _begun(self, end: Callable[[], None]) -> Iterator[None]:
        if self.in_transaction:
            yield
            return
        self.begin()
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        end()

    @property
    def in_transaction(self) -> bool:
        """Tell whether a transaction is open that a further one is to be a part of."""
        return False

    @contextlib.contextmanager
    def grouping_by_hash(self) -> Iterator[None]:
        """Inside, engines that would sort rows to group them, for fear of many groups, hash them instead."""
        yield

    @contextlib.contextmanager
    def grouping_by_number(self, most: int) -> Iterator[None]:  # noqa: ARG002 - engines with such arrays need it
        """Inside, engines that can count the groups of a number in an array do so, of as many places as `most`, about.

        The others group as in `grouping_by_hash`.
        """
        with self.grouping_by_hash():
            yield

    @abstractmethod
    def _execute(self, statement: Statement) -> int: ...

    @abstractmethod
    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]: ...

    def _fetch_blocks(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        rows = self._fetch(statement)
        yield from (rows[first : first + size] for first in range(0, len(rows), size))

    @abstractmethod
    def begin(self) -> None:
        """Start a transaction whose reads all see one snapshot."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    @abstractmethod
    def cancel(self) -> None:
        """Stop the statement that is running; may be called from another thread."""
