"""All sequences of questions to tables of up to eight rows: none tells of fewer than k persons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.inquiries.questions import question_audit as auditing
from sqlanon.inquiries.questions.axes import TypedCondition, spans_of
from sqlanon.inquiries.questions.question import parse_question
from sqlanon.inquiries.questions.question_audit import AskedTable
from sqlanon.inquiries.questions.row_space import SumVerdict
from tests.inquiries.questions.linear import learns, tells_of_few
from tests.inquiries.questions.sum_spaces import Sums, canonical, extend, persons_of
from tests.inquiries.risk.tables import make_table
from tests.oracle.mutants import mutated
from tests.random_cases import many

pytestmark = pytest.mark.slow


class RememberingEngine:
    """An engine that counts the cells of a small table once for the same constants, as the table stays as it is."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._answers: dict[str, Any] = {}

    def query(self, template: str, **values: Any) -> Any:
        constants = repr([template, [axis["constants"] for axis in values["axes"]]])
        assert values["divisor"] == 1
        if constants not in self._answers:
            self._answers[constants] = self._engine.query(template, **values)
        cells = self._answers[constants]
        assert min(values["most"], values["tuples"] or values["most"]) > sum(cell[-1] for cell in cells)
        return cells


@dataclass
class Persons:
    """A table of a few persons, of whom any can be asked: `age in (…)`."""

    engine: Engine
    count: int
    k: int
    asked: dict[int, tuple[TypedCondition, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        relation = make_table(self.engine, {"age": "INTEGER"}, [(age,) for age in range(self.count)])
        columns = self.engine.columns(relation)
        self._table = AskedTable(cast(Engine, RememberingEngine(self.engine)), relation, None, self.k)
        for one in range(1, 2**self.count):
            ages = ", ".join(map(str, persons_of(one)))
            self.asked[one] = spans_of(parse_question(f"count(*) where age in ({ages})"), columns, ["age"])

    def decide(self, known: Sums, asked: int) -> SumVerdict:
        """Decide as `ask` does on a sum, where others are known."""
        return auditing.audit(self._table, [self.asked[one] for one in known], self.asked[asked], self.count)


@dataclass
class Explored:
    """The numbers of states that were reached, up to the names of persons, and of questions in them."""

    states: int = 0
    questions: int = 0
    denied: int = 0


def explore(persons: Persons) -> Explored:
    """Ask all questions in all states that answers lead to, and hold each verdict against fractions.

    A state is the space of the sums that are known, however they came to be known. States that differ by the names of
    persons alone are one: of a person nothing counts but the sums that the person is in. As the total is known, a
    question and that to all others tell the same: of each such pair one is asked, now the one, now the other.
    """
    count, k = persons.count, persons.k
    explored, everyone = Explored(), 2**count - 1
    open_, reached, few = [list[int]()], set[bytes](), dict[bytes, bool]()
    while open_:
        known = open_.pop()
        explored.states += 1
        assert not learns([persons_of(one) for one in (everyone, *known)], count, k)
        own, groups = extend([everyone, *known], count)
        assert all(persons.decide(known, one) is SumVerdict.FOLLOWS for one in own)
        for group in groups:
            state = canonical([*own, *group], count)
            if state not in few:
                few[state] = tells_of_few([persons_of(one) for one in (everyone, *known, group[0])], count, k)
            asked = [one for one in group if one % 2 == len(known) % 2]
            wanted = SumVerdict.DENIED if few[state] else SumVerdict.NEW
            assert {persons.decide(known, one) for one in asked} == {wanted}, (known, group)
            explored.questions += len(asked)
            explored.denied += few[state] * len(asked)
            if not few[state] and state not in reached:
                reached.add(state)
                open_.append([*known, asked[0]])
    return explored


def in_memory(count: int, k: int) -> Explored:
    with connect("duckdb:///:memory:") as engine:
        return explore(Persons(engine, count, k))


STATES = {
    (2, 2): 1,
    (3, 2): 1,
    (4, 2): 3,
    (5, 2): 4,
    (5, 3): 1,
    (6, 2): 20,
    (6, 3): 2,
    (7, 3): 4,
    (8, 3): 14,
    (8, 4): 4,
}
DEAR = {(7, 2): 84, (8, 2): 1_040}  # minutes of the processor
dear = pytest.mark.skipif(many(1) < 10, reason="takes minutes: SQLANON_TEST_EXAMPLES=10")


@pytest.mark.parametrize(
    ("count", "k", "states"),
    [
        *((*sizes, states) for sizes, states in STATES.items()),
        *(pytest.param(*sizes, states, marks=[dear, pytest.mark.timeout(7200)]) for sizes, states in DEAR.items()),
    ],
)
def test_no_sequence_of_questions_tells_of_few(count: int, k: int, states: int) -> None:
    """Every sequence of questions to so many persons, of whom each question may be about any.

    These are all sequences to all tables of so many rows, whatever their columns: a condition chooses rows, and where
    rows are equal the questions are some of those that are asked here, with the same decision (`test_row_space.py`).
    The space of what is known decides, so that of the sequences to a space one is tried, the first that came to it;
    random sequences, there, come to spaces in other ways. Sets of fewer than k or more than N - k persons, which are
    never answered, are audited with the others. With k above N / 2 nothing is answered.
    """
    assert in_memory(count, k).states == states


@pytest.mark.parametrize(
    ("place", "old", "new", "sizes"),
    [
        ("question_audit:audit", "questions = [*known, asked]", "questions = [*known[:-1], asked]", (5, 2)),
        ("question_audit:audit_sum", "sizes >= k", "sizes >= k - 1", (4, 2)),
        ("row_space:_Search.finds", "more < self._k", "more < self._k - 1", (6, 3)),
        ("row_space:_without", "[:, column, None] * pivot", "[:, column, None] * 0", (5, 2)),
    ],
)
def test_sequences_that_tell_are_caught(place: str, old: str, new: str, sizes: tuple[int, int]) -> None:
    with mutated(f"sqlanon.inquiries.questions.{place}", old, new), pytest.raises((AssertionError, IndexError)):
        in_memory(*sizes)
