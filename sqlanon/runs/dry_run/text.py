"""The script of a dry run, as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlanon.catalog import Step

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
