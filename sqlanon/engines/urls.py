"""Database URLs: their scheme, and what of them may be shown."""

from __future__ import annotations

import re
from urllib.parse import unquote

from sqlanon.errors import PolicyError

_SECRET_KEYS = re.compile(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)
# A password may hold any character, even unescaped: it ends at the last @. Too much is hidden rather than too little.
_AUTHORITY = re.compile(r"(?P<user>[^:/?#@]*):.*@", re.DOTALL)
_PARAMETER = re.compile(r"([?&])([^&]*)")
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://(?P<rest>.*)", re.DOTALL)
# In a message: what stands between a user's name and the last @, and what a setting is set to, but for a colon that
# ends a part of the sentence. So messages of our own hold no @.
_SPAN = re.compile(r"([^:/?#@\s]*):(?!//|\s)[^\n]*@")
_SETTING = re.compile(
    r"([\w.%-]*(?:pass|pwd|secret|token|key|credential)[\w.%-]*=)[^\s&,;)]*?(?=:?(?:[\s&,;)]|$))", re.IGNORECASE
)


_UNESCAPED = (
    "The {}:// URL has characters in its user's name or password that must be percent-encoded: "
    "an at sign as %40, a slash as %2F, a colon as %3A, a question mark as %3F, a percent sign as %25."
)


def scheme_of(url: str) -> str | None:
    """The URL's scheme in lower case; None where the text is not a URL."""
    match = _URL.fullmatch(url)
    return match["scheme"].lower() if match else None


def require_escaped(url: str) -> None:
    """Raise PolicyError for a PostgreSQL URL of which libpq would take a part of the password for the host or database.

    It reads the user and the password up to the first @, if no / comes before that. An @ that follows outside of the
    parameters is then not where whoever wrote the URL took the password to end; nothing of such a URL is shown.
    """
    scheme, _, rest = url.partition("://")
    begin, at, end = rest.partition("@")
    place = end if at and "/" not in begin else rest
    if "@" in place.partition("?")[0]:
        raise PolicyError(_UNESCAPED.format(scheme))


def redacted(url: str) -> str:
    """The URL without its password and without query parameters that look like secrets: fit to be stored and shown."""
    match = _URL.fullmatch(url)
    if not match:
        return "***" if "@" in url or "password" in url.lower() else url
    rest = match["rest"]
    authority = _AUTHORITY.match(rest)
    if authority:
        rest = authority["user"] + "@" + rest[authority.end() :]
    return f"{match['scheme']}://" + _PARAMETER.sub(lambda found: found[1] + _redacted_parameter(found[2]), rest)


def _redacted_parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return f"{name}=***" if equals and _SECRET_KEYS.search(unquote(name)) else parameter


def scrubbed(text: str) -> str:
    """A message that may quote URLs, whole or damaged, without what could be a secret in them."""
    return _SETTING.sub(r"\1***", _SPAN.sub(r"\1@", text))
