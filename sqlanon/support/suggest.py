"""The nearest right word for a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_BEGINNING = 3  # letters that tell which word was meant
_LONGEST = 500  # letters of a word that anyone means; comparing takes their square


def nearest(word: str, choices: Iterable[str], most: int = 3) -> list[str]:
    """Up to `most` of `choices` that look like `word`, the nearest first; upper and lower case count as alike.

    If none does, those that begin with it.
    """
    if len(word) > _LONGEST:
        return []
    folded: dict[str, list[str]] = {}
    for choice in choices:
        folded.setdefault(choice.casefold(), []).append(choice)
    close = difflib.get_close_matches(word.casefold(), sorted(folded), n=most, cutoff=0.6)
    close = close or [key for key in sorted(folded) if len(word) >= _BEGINNING and key.startswith(word.casefold())]
    return [choice for key in close for choice in sorted(folded[key])][:most]


def did_you_mean(word: str, choices: Iterable[str], most_listed: int = 12) -> str:
    """A sentence that offers the nearest of `choices`, or all of them if none is near; empty without choices."""
    known = list(choices)
    close = nearest(word, known)
    if close:
        return f"did you mean {any_of(close)}?"
    if not known:
        return ""
    rest = f" and {len(known) - most_listed} more" if len(known) > most_listed else ""
    return f"choose from {', '.join(quoted(known[:most_listed]))}{rest}."


def any_of(words: Iterable[str]) -> str:
    """Words as a choice: `'a', 'b' or 'c'`."""
    *first, last = quoted(words)
    return f"{', '.join(first)} or {last}" if first else last


def quoted(words: Iterable[str]) -> list[str]:
    """Each word in single quotes."""
    return [f"'{word}'" for word in words]
