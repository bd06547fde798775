"""Words that are known beforehand, countries and occupations, and the groups that drafts propose for them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILLERS = ("other", "and", "of", "the", "in", "for")  # of occupations; they say nothing
FOREIGN = r"[^A-Za-z .,&()/_'-]"  # no letter or punctuation; a value without such, of known words, is no secret


@dataclass(frozen=True)
class Vocabulary:
    """Words about one thing, each with its groups from fine to coarse.

    phrases: whether a value is one of them as a whole; else each of its words is, and the last one says the groups.
    """

    groups: Mapping[str, tuple[str, ...]]
    phrases: bool

    @property
    def pattern(self) -> str:
        """A regular expression of the values that are known, in lower case and with blanks for all but letters."""
        words = "|".join([*self.groups, *(() if self.phrases else FILLERS)])
        return f"^({words})$" if self.phrases else f"^({words})( ({words}))*$"

    def groups_of(self, value: str) -> tuple[str, ...] | None:
        """The groups of a value; None where it is not known."""
        plain = re.sub("[^a-z]+", " ", value.lower()).strip()
        known = [plain] if self.phrases else reversed(plain.split())
        return next((self.groups[word] for word in known if word in self.groups), None)


@functools.cache
def vocabularies() -> tuple[Vocabulary, ...]:
    """All that are known; of `words.csv`."""
    text = (Path(__file__).parent / "words.csv").read_text(encoding="utf-8")
    lines = [line.split(";") for line in text.splitlines() if line and not line.startswith("#")]
    about = {kind: {} for kind, *_ in lines}  # type: dict[str, dict[str, tuple[str, ...]]]
    for kind, words, *labels in lines:
        about[kind].update(dict.fromkeys(words.split("|"), tuple(labels)))
    return tuple(Vocabulary(groups, phrases=kind == "country") for kind, groups in about.items())
