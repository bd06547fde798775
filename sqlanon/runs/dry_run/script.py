"""The script of a dry run: whatever a run would do to databases and files, in order, and as people read it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlanon.catalog import Step
from sqlanon.work.journal import Silent

HEAD = (
    "To be read, not to be run: a run decides by what the database answers, and a script can't. All that a run does",
    "is here, in its order: comments stand for what is no statement, and for statements that take values or rows from",
    "the program. Questions about names, types and privileges are left out, and numbers out of the data are withheld:",
    "1 stands for each. The answers about data are made up; names of work tables are made of the run's id.",
)


_PHASES = {
    "plan": "The policy is held against the live table, which this dry run has done.",
    "encode": "One snapshot of the source becomes codes.",
    "search": "A short search that is made up: a run sends what belongs to a round, or to a candidate, again and again,"
    "\n-- with other numbers, until nothing is left to decide.",
    "recode": "The rules are kept, and the release is built where nobody sees it.",
    "verify": "The staged release is checked on its own.",
    "publish": "The staged release takes its place, and is recorded; then everything else is dropped.",
}


_WITHHELD = "/* withheld */ ?"


@dataclass
class Script(Silent):
    """The steps so far; as the observer of the run it learns of the phases.

    is_planning: whether the run makes its plan, for which the live table is read.
    repeats: how many statements of one template a phase shows; all by default.
    """

    steps: list[Step] = field(default_factory=list)
    current: str = "plan"
    is_planning: bool = False
    repeats: int | None = None

    def phase(self, name: str) -> None:
        self.current = name

    @contextlib.contextmanager
    def planning(self) -> Iterator[None]:
        """Inside, the run makes its plan."""
        self.is_planning = True
        try:
            yield
        finally:
            self.is_planning = False

    def note(self, name: str, text: str) -> None:
        """Write a step down, in the phase that is current."""
        noted = sum(step.name == name and step.phase == self.current for step in self.steps)
        if self.repeats is None or noted < self.repeats:
            self.steps.append(Step(len(self.steps), self.current, name, text, 0.0))

    def remark(self, name: str, text: str) -> None:
        """Write down, as a comment, what is no statement, or one that can't be sent without what it is sent with."""
        self.note(name, "\n".join(f"-- {line}".rstrip() for line in text.splitlines()))

    def count(self, name: str) -> int:
        """Count the statements of a template."""
        return sum(step.name == name for step in self.steps)


def script_lines(steps: Sequence[Step]) -> Iterator[str]:
    """The lines of a script, phase by phase."""
    phase = ""
    for step in steps:
        if step.phase != phase:
            phase = step.phase
            yield f"\n\n-- ==== {phase} ====\n-- {_PHASES[phase]}"
        yield f"\n{step.comment()}\n{_statement_text(step.statement)}"


def _statement_text(statement: str) -> str:
    """A statement as a script has it: with its end, unless it is a comment."""
    text = statement.rstrip().rstrip(";").replace(_WITHHELD, _WITHHELD.replace("?", "1"))
    return text if all(line.startswith("--") for line in text.splitlines()) else f"{text};"
