"""Histories of questions: what was answered of each table, so that no later answer gives away more than it says.

A question is written before its answer is worked out, in a transaction of its own, and never taken back: whoever
interrupts a call may have seen the answer. Answers are not kept.
"""

from __future__ import annotations

import contextlib
import getpass
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlanon.catalog import locks
from sqlanon.catalog.connection import Transaction
from sqlanon.catalog.elsewhere import Elsewhere, add_sources, owners_of_sources
from sqlanon.catalog.location import database_of
from sqlanon.errors import ConflictError, ProtectionError
from sqlanon.sql import Relation

_WAIT = 60.0  # seconds: a question is decided in about one
_BUSY = "Other questions have been decided for a minute: ask again when they have ended."


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question of a history; `adds` are the measures of which it told more than those before it."""

    number: int
    question: str
    adds: tuple[str | None, ...]
    asked_by: str
    written: datetime


@dataclass(frozen=True)
class History:
    """The questions that were answered of a table, and the digest of its rows as the first question saw them."""

    name: str
    digest: str
    questions: tuple[AnsweredQuestion, ...]


class Histories(Elsewhere):
    """The histories of questions of a catalog."""

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Let nobody else decide on a question of these tables meanwhile, by any catalog; who does is waited for."""
        with (
            locks.held(self._store, f"questions of {self.location.name} of {database_of(self._store)}", _BUSY, _WAIT),
            locks.held(self._keeper, f"questions in {self._database}", _BUSY, _WAIT),
        ):
            yield

    def history(self, sources: Sequence[str]) -> History | None:
        """Read the history of a table; None where no question was answered of it.

        Questions that were answered through other catalogs count, where the role may read these; see `identities`.

        sources: its identities, see `identities`.

        Raises:
            ConflictError: the identities lead to several histories.
            ProtectionError: questions are missing, so that nothing more can be answered, or the table is no longer what
                questions of another catalog were answered of.
        """

        def read(transaction: Transaction) -> list[History]:
            history = _history(transaction, sources)
            return [] if history is None else [history]

        own = self._ask(read)
        return _joined([*own, *(history for _, history in self._read_elsewhere("questions", read))])

    def asked_tables(self, sources: Sequence[str]) -> list[Relation]:
        """The tables of this database whose questions are in other histories than a table's, by the names they had.

        sources: the identities of the table. Other catalogs that the role may read count.
        """
        end, names = f" of {self._database}", list[str]()
        elsewhere = [owners for _, owners in self._owners_elsewhere("history")]
        for owners in (self._ask(lambda transaction: owners_of_sources(transaction, "history")), *elsewhere):
            own = {owners.get(source) for source in sources}
            names += [
                one.removeprefix("table ").removesuffix(end)
                for one, owner in owners.items()
                if owner not in own and one.startswith("table ") and one.endswith(end)
            ]
        return [Relation.parse(name) for name in dict.fromkeys(names)]

    def write_question(
        self, sources: Sequence[str], digest: str, question: str, adds: Sequence[str | None]
    ) -> AnsweredQuestion:
        """Write down a question that is about to be answered; call it inside `asking`. If it raises, don't answer.

        digest: of the table, which opens a history with its first question.
        """

        def write(transaction: Transaction) -> AnsweredQuestion:
            if not self._store.traits.is_embedded:
                transaction.execute("commit_durably")
            now, history = datetime.now(UTC), _history(transaction, sources)
            if history is None:
                name = f"{now:%Y%m%d%H%M%S%f} {sources[0]}"
                history = History(name, digest, ())
                values = {"name": name, "digest": digest, "questions": 0, "opened": now}
                transaction.insert("histories", [values])
            add_sources(transaction, "history", history.name, sources, now)
            answered = AnsweredQuestion(len(history.questions) + 1, question, tuple(adds), getpass.getuser(), now)
            transaction.update("histories", {"name": history.name}, questions=answered.number)
            values = {"history": history.name, **vars(answered), "adds": json.dumps(list(adds), ensure_ascii=False)}
            transaction.insert("questions", [values])
            return answered

        return self._connection.do("write down the question, so that it was not answered", write)


def _joined(histories: Sequence[History]) -> History | None:
    """Join the histories that catalogs have of one table."""
    if not histories:
        return None
    if len({history.digest for history in histories}) > 1:
        raise ProtectionError(
            "Questions were answered of this table through several catalogs of the database, of other rows each:"
            " nothing more is answered. Let questions be about tables that don't change, such as a copy a year."
        )
    questions = tuple(question for history in histories for question in history.questions)
    return History(histories[0].name, histories[0].digest, questions)


def _history(transaction: Transaction, sources: Sequence[str]) -> History | None:
    owners = owners_of_sources(transaction, "history")
    names = sorted({owners[source] for source in sources if source in owners})
    if len(names) > 1:
        raise ConflictError(
            "Questions were answered of this table under one name, and of another table under the name that it has now:"
            " nothing more is answered. Give the tables the names that they had."
        )
    if not names:
        return None
    (row,) = transaction.select("histories", ["name", "digest", "questions"], {"name": names[0]})
    of_history, read = {"history": names[0]}, {"adds": lambda text: tuple(json.loads(text))}
    questions = transaction.records(AnsweredQuestion, "questions", of_history, ["number"], read)
    if [one.number for one in questions] != list(range(1, row["questions"] + 1)):
        raise ProtectionError(
            f"The history of questions is damaged: {row['questions']} were answered, and not all are there. Nothing"
            " more is answered. Restore the catalog from a backup."
        )
    return History(row["name"], row["digest"], tuple(questions))
