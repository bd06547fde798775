"""Word lists of people's names, first and last ones of many languages, of the library `faker` where it is there."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Any

LEAST_LETTERS = 3  # of a name in ASCII: shorter ones are initials, codes and particles
_LISTS = ("first_names", "first_names_male", "first_names_female", "first_names_nonbinary", "last_names")


@functools.cache
def known_names() -> tuple[str, ...]:
    """The words of all names, in lower case; none where the library is not installed."""
    if importlib.util.find_spec("faker") is None:
        return ()
    words = {word.strip("()") for name in _names() for word in name.lower().split()} - {""}
    return tuple(sorted(word for word in words if len(word) >= LEAST_LETTERS or not word.isascii()))


def _names() -> Iterator[str]:
    package: Any = importlib.import_module("faker.providers.person")
    for module in pkgutil.iter_modules(package.__path__):
        provider = importlib.import_module(f"faker.providers.person.{module.name}").Provider
        for name in _LISTS:
            listed = getattr(provider, name, None)
            if isinstance(listed, Iterable):  # some are computed by an instance
                yield from (one for one in listed if isinstance(one, str))
