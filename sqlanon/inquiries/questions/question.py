"""Grammar of questions, such as `sum(income) where age between 30 and 39 and job = 'nurse'`.

    question    = aggregate "(" (column | "*") ")" ["where" condition {"and" condition}]
    condition   = column ("=" | "<" | "<=" | ">" | ">=") constant
                | column "between" constant "and" constant
                | column "in" "(" constant {"," constant} ")"
    column      = a plain name, or one in double quotes
    constant    = a number, a 'text', true, false

Nothing of a question goes into a statement but names that the table has, as identifiers, and constants of the types
of their columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

from sqlanon.errors import QuestionError
from sqlanon.sql import Identifier
from sqlanon.support.documents import NO_TEXT, is_text

Constant = Decimal | str | bool

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*")|(?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+))(?![\w.])"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<mark><=|>=|[()=<>,*]))"""
)
_LONGEST = 20_000  # characters
_WORDS = frozenset(("where", "and", "between", "in"))


class Aggregate(StrEnum):
    """Aggregate of a question."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


class Comparator(StrEnum):
    """Comparator of a column with constants."""

    EQUAL = "="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    BETWEEN = "between"
    IN = "in"


@dataclass(frozen=True)
class Condition:
    """One comparison; `constants` are two for BETWEEN, one or more for IN, else one."""

    column: str
    test: Comparator
    constants: tuple[Constant, ...]

    def __str__(self) -> str:
        name, written = Identifier(self.column), [_written(constant) for constant in self.constants]
        if self.test is Comparator.BETWEEN:
            return f"{name} between {written[0]} and {written[1]}"
        return f"{name} in ({', '.join(written)})" if self.test is Comparator.IN else f"{name} {self.test} {written[0]}"


@dataclass(frozen=True)
class Question:
    """A parsed question; `column` is what is aggregated, None for `count(*)`."""

    aggregate: Aggregate
    column: str | None
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        """Write the question so that it reads as the same again."""
        what = "*" if self.column is None else Identifier(self.column)
        conditions = " and ".join(map(str, self.conditions))
        return f"{self.aggregate}({what})" + (f" where {conditions}" if conditions else "")

    def renamed(self, names: Mapping[str, str]) -> Question:
        """The same question where columns have other names; a column without one keeps its own."""
        conditions = tuple(replace(one, column=names.get(one.column, one.column)) for one in self.conditions)
        column = None if self.column is None else names.get(self.column)
        return Question(self.aggregate, column or self.column, conditions)

    @property
    def measures(self) -> tuple[str | None, ...]:
        """The columns of which sums become known; None stands for the number of rows."""
        if self.aggregate is Aggregate.AVG:
            return (None, self.column)
        return (None,) if self.aggregate is Aggregate.COUNT else (self.column,)


def parse_question(text: str) -> Question:
    """Parse a question.

    Raises QuestionError, which says where reading stopped, where the text is none.
    """
    if not is_text(text):
        raise QuestionError(f"The question holds {NO_TEXT}.")
    if len(text) > _LONGEST:
        raise QuestionError(f"The question is longer than {_LONGEST:,} characters; ask a narrower one.")
    return _Parser(text).question()


@dataclass(frozen=True)
class _Token:
    """A token; kind: text, quoted, number, word, mark or end."""

    kind: str
    text: str
    start: int

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.lower() == word


class _Parser:
    """Parser of one question, by recursive descent."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._place = 0

    def question(self) -> Question:
        aggregate = self._aggregate()
        self._mark("(", "an opening bracket")
        column = None if self._takes_mark("*") else self._column()
        if column is None and aggregate is not Aggregate.COUNT:
            raise QuestionError(f"{aggregate} is of a column: write {aggregate}(income), and * for count alone.")
        if column is not None and aggregate is Aggregate.COUNT:
            raise QuestionError("count is of rows: write * in place of the column.")
        self._mark(")", "a closing bracket")
        conditions = self._conditions() if self._takes_word("where") else ()
        if self._next.kind != "end":
            raise self._expected("the end, or `and` with a further condition (conditions are joined by `and` alone)")
        return Question(aggregate, column, conditions)

    def _aggregate(self) -> Aggregate:
        token = self._take()
        names = [one.value for one in Aggregate]
        if token.kind != "word" or token.text.lower() not in names:
            self._place -= 1
            raise self._expected(f"one of {', '.join(names)}")
        return Aggregate(token.text.lower())

    def _conditions(self) -> tuple[Condition, ...]:
        conditions = [self._condition()]
        while self._takes_word("and"):
            conditions.append(self._condition())
        return tuple(conditions)

    def _condition(self) -> Condition:
        column = self._column()
        if self._takes_word("between"):
            low = self._constant()
            if not self._takes_word("and"):
                raise self._expected("`and` with the upper end")
            return Condition(column, Comparator.BETWEEN, (low, self._constant()))
        if self._takes_word("in"):
            self._mark("(", "an opening bracket")
            constants = [self._constant()]
            while self._takes_mark(","):
                constants.append(self._constant())
            self._mark(")", "a comma or a closing bracket")
            return Condition(column, Comparator.IN, tuple(constants))
        for test in (Comparator.EQUAL, Comparator.AT_MOST, Comparator.AT_LEAST, Comparator.LESS, Comparator.MORE):
            if self._takes_mark(test.value):
                return Condition(column, test, (self._constant(),))
        raise self._expected("=, <, <=, >, >=, between or in")

    def _column(self) -> str:
        token = self._next
        if token.kind == "quoted" and len(token.text) > 2:
            return self._take().text[1:-1].replace('""', '"')
        if token.kind != "word" or token.text.lower() in _WORDS:
            raise self._expected("the name of a column")
        return self._take().text

    def _constant(self) -> Constant:
        token = self._next
        if token.kind == "number":
            return Decimal(self._take().text)
        if token.kind == "text":
            return self._take().text[1:-1].replace("''", "'")
        if token.is_word("true") or token.is_word("false"):
            return self._take().text.lower() == "true"
        raise self._expected("a number, or a text in single quotes")

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _take(self) -> _Token:
        token = self._next
        self._place += token.kind != "end"
        return token

    def _takes_mark(self, mark: str) -> bool:
        taken = self._next.kind == "mark" and self._next.text == mark
        self._place += taken
        return taken

    def _takes_word(self, word: str) -> bool:
        taken = self._next.is_word(word)
        self._place += taken
        return taken

    def _mark(self, mark: str, what: str) -> None:
        if not self._takes_mark(mark):
            raise self._expected(what)

    def _expected(self, what: str) -> QuestionError:
        return QuestionError(f"The question can't be read: at character {self._next.start + 1} there should be {what}.")


def _tokens(text: str) -> list[_Token]:
    tokens, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            raise QuestionError(
                f"The question can't be read: character {place + 1} begins nothing that questions have."
            )
        tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        place = match.end()
    return [*tokens, _Token("end", "", len(text))]


def _written(constant: Constant) -> str:
    if isinstance(constant, bool):
        return str(constant).lower()
    return f"{constant:f}" if isinstance(constant, Decimal) else "'" + constant.replace("'", "''") + "'"
