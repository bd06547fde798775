"""The environment that a job needs where something else starts it: what of it is written down, and what is secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlanon.engines.dialects import Dialect
from sqlanon.engines.urls import redacted, scrubbed
from sqlanon.support.environment import references

_HIDDEN = re.compile(r"([?&])[^&=]*=\*\*\*(?:&|$)")
_SECRET_NAME = re.compile(r"pass(?!file)|pwd|secret|token|(?<!ssl)key|credential", re.IGNORECASE)
_FILES = ("PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR", "PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT", "PGSSLCRL")
_PLACEHOLDER = "PLACEHOLDER"


@dataclass(frozen=True)
class Environment:
    """Variables by name.

    shown: those that may be written down.
    secret: the names of those that may not, and come from a file of their own.
    has_password: whether libpq must be told a password besides, which it reads from a file of its own.
    """

    shown: dict[str, str] = field(default_factory=dict)
    secret: tuple[str, ...] = ()
    has_password: bool = False

    def joined(self, other: Environment) -> Environment:
        """The variables of both; one that is secret in either is."""
        secret = {*self.secret, *other.secret}
        shown = {name: value for name, value in (other.shown | self.shown).items() if name not in secret}
        return Environment(shown, tuple(sorted(secret)), self.has_password or other.has_password)

    def with_parts_of(self, dialect: type[Dialect]) -> Environment:
        """The same and what an engine's sessions take from this environment where a URL lacks it."""
        variables = _with_whole_paths(dialect.variables())
        secret = {*self.secret, *(name for name, value in variables.items() if scrubbed(value) != value)}
        shown = {name: value for name, value in (self.shown | variables).items() if name not in secret}
        password = dialect.password_variable in {*os.environ} - secret
        return Environment(shown, tuple(sorted(secret)), self.has_password or password)


def of_url(url: str) -> Environment:
    """Build the environment that names the catalog of a URL."""
    return Environment({"SQLANON_URL": without_secrets(url)}, (), redacted(url) != url)


def of_policy(text: str) -> Environment:
    """The variables that a policy's text refers to, as far as they are set."""
    named = {name: os.environ[name] for name in references(text) if name in os.environ}
    secret = tuple(name for name, value in named.items() if _is_secret(text, name, value))
    return Environment({name: value for name, value in named.items() if name not in secret}, secret)


def without_secrets(url: str) -> str:
    """The URL as it still reaches its database once passwords come from elsewhere."""
    kept = redacted(url)
    while (shorter := _HIDDEN.sub(r"\1", kept)) != kept:
        kept = shorter
    return kept.rstrip("?&") if kept != redacted(url) else kept


def _is_secret(text: str, name: str, value: str) -> bool:
    """Tell whether a variable is secret by name or value, or stands where a password does in a URL of the text."""
    if _SECRET_NAME.search(name) or redacted(value) != value:
        return True
    reference = f"${{{name}}}"
    words = [word for line in text.splitlines() for word in line.split() if reference in word]
    return any(_is_hidden(word.replace(reference, put), put) for word in words for put in (_PLACEHOLDER, value) if put)


def _is_hidden(word: str, part: str) -> bool:
    """Tell whether a part of a URL, as YAML writes it, is not to be shown."""
    url = word.strip("\"',{}[]")
    return redacted(url).count(part) < url.count(part)


def _with_whole_paths(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables, of which those that name a file do so from any directory."""
    return {
        name: str(Path(value).absolute()) if name in _FILES and Path(value).exists() else value
        for name, value in variables.items()
    }
