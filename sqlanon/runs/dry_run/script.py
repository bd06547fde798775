"""The script of a dry run: whatever a run would do to databases and files, in order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlanon.catalog import Step
from sqlanon.work.journal import Silent


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
