"""Word lists of faked values: those of Faker for names and streets, and ranges that are reserved for examples.

E-mails are in domains of RFC 2606. Phone numbers end in 555-01XX, which the North American Numbering Plan keeps for
fiction. Addresses have postal codes below 00500, of which none is given to a place.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

DOMAINS = ("example.com", "example.net", "example.org")
_POSTAL_CODES = 500  # the least that the United States use is 00501
_AREAS = range(200, 1000)


def words_of(kind: str) -> list[list[str]]:
    """List the words of each part of a text of this kind: up to four parts, of which a text has a word each, in order.

    The words of a list differ by more than the case of letters.
    """
    makers = {
        "first-name": lambda: [_first_names()],
        "last-name": lambda: [_last_names()],
        "name": lambda: [_first_names(), _behind(" ", _last_names())],
        "e-mail": lambda: [
            _plain(_first_names()),
            _behind(".", _plain(_last_names())),
            [f"{number:04}" for number in range(10_000)],
            _behind("@", DOMAINS),
        ],
        "phone": lambda: [[f"+1 {area} " for area in _AREAS], [f"555-01{number:02}" for number in range(100)]],
        "address": lambda: [
            [str(number) for number in range(1, 10_000)],
            _behind(" ", _last_names()),
            _behind(" ", _of_addresses("street_suffixes")),
            [f", {code:05}" for code in range(_POSTAL_CODES)],
        ],
        "city": lambda: [
            _of_addresses("city_prefixes"),
            _behind(" ", _last_names()),
            _of_addresses("city_suffixes"),
        ],
    }
    return makers[kind]()


def rows_of(lists: Sequence[Sequence[str]]) -> list[tuple[int, int, str, str]]:
    """Write lists as rows: the part, the place of a word in its list, the word, and the one that follows it there."""
    return [
        (part, place, word, words[(place + 1) % len(words)])
        for part, words in enumerate(lists)
        for place, word in enumerate(words)
    ]


def _first_names() -> list[str]:
    return _different(_provider("person").first_names)


def _last_names() -> list[str]:
    return _different(_provider("person").last_names)


def _of_addresses(name: str) -> list[str]:
    return _different(getattr(_provider("address"), name))


def _provider(part: str) -> Any:
    """Load the lists of a part of Faker's, for the locale en_US."""
    return importlib.import_module(f"faker.providers.{part}.en_US").Provider


def _plain(words: Iterable[str]) -> list[str]:
    """Write words in lower-case letters alone."""
    return _different(re.sub("[^a-z]", "", word.lower()) for word in words)


def _behind(mark: str, words: Iterable[str]) -> list[str]:
    return [mark + word for word in words]


def _different(words: Iterable[str]) -> list[str]:
    """Keep the first of words that differ by the case of letters alone, in the order of their letters."""
    kept = {word.lower(): word for word in reversed(list(words))}
    return [kept[word] for word in sorted(kept)]
