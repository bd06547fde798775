"""The phases of runs, and of other long work, as people read them."""

from __future__ import annotations

_WORDS = {
    "plan": "planning",
    "encode": "encoding",
    "search": "searching",
    "recode": "recoding",
    "verify": "verifying",
    "publish": "publishing",
    "procedure": "running the procedure",
    "ledger": "auditing the ledger",
    "neighbours": "running over neighbouring tables",
    "samples": "sampling mechanisms",
}


def phase_words(name: str) -> str:
    """Name the work of a phase, and its table where that follows; a phase without words of its own by its name."""
    phase, _, table = name.partition(" ")
    return f"{_WORDS.get(phase, phase)} {table}".rstrip()
