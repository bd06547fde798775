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
    """Name the work of a phase; a phase without words of its own by its name."""
    return _WORDS.get(name, name)
