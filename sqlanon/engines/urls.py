"""Database URLs: their scheme, and what of them may be shown."""

from __future__ import annotations

import re
from urllib.parse import unquote

from sqlanon.errors import PolicyError

_SECRET_KEYS = re.compile(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)
_NAMED_SECRET = re.compile(rf"[\w.-]*({_SECRET_KEYS.pattern})[\w.-]*=", re.IGNORECASE)  # such as of a URL in a value
_INNER_PASSWORD = re.compile(r":[^@]*@")  # of a URL in a value
# A password may hold any character, even unescaped: it ends at the last @. Too much is hidden rather than too little.
_AUTHORITY = re.compile(r"(?P<user>[^:/?#@]*):.*@", re.DOTALL)
_PARAMETER = re.compile(r"([?&])([^&]*)")
_CONNECT_PARAMETER = re.compile(r"(;)([^;]*)")  # of Spark Connect: sc://host/;token=…
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://(?P<rest>.*)", re.DOTALL)
# In a message: what stands between a user's name and the last @ of a line, and what settings are set to, but for a
# colon that ends a part of the sentence. So messages of our own hold no @. No run of characters is gone through twice.
_USER = re.compile(r"(?<![^:/?#@\s])[^:/?#@\s]*+(?=:(?!//|\s))")
_NAME = re.compile(r"(?<![\w.%-])[\w.%-]++=")
_VALUE = re.compile(r"[^\s&,;)]*+")

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
    for pattern in (_PARAMETER, _CONNECT_PARAMETER):
        rest = pattern.sub(lambda parameter: parameter[1] + _redacted_parameter(parameter[2]), rest)
    return f"{match['scheme']}://{rest}"


def holds_secret(url: str) -> bool:
    """Tell whether a URL holds a password or the like; an empty one is none."""
    return redacted(url).replace("***", "") != url.replace(":@", "@")


def _redacted_parameter(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    plain = unquote(value)
    is_secret = _SECRET_KEYS.search(unquote(name)) or _INNER_PASSWORD.search(plain) or _NAMED_SECRET.search(plain)
    return f"{name}=***" if equals and is_secret else parameter


def scrubbed(text: str) -> str:
    """A message that may quote URLs, whole or damaged, without what could be a secret in them."""
    return _without_settings("\n".join(_without_password(line) for line in text.split("\n")))


def _without_password(line: str) -> str:
    """A line without what stands between the first user's name and the last @."""
    end = line.rfind("@")
    user = _USER.search(line, 0, end) if end > 0 else None
    return line if user is None else line[: user.end()] + line[end:]


def _without_settings(text: str) -> str:
    """A text without what settings are set to whose names look like secrets."""
    shown, done = "", 0
    for name in _NAME.finditer(text):
        if name.start() >= done and _SECRET_KEYS.search(name[0]):
            value = _VALUE.match(text, name.end())
            assert value is not None  # it may be empty
            end = value.end() - value[0].endswith(":")
            shown, done = shown + text[done : name.end()] + "***", end
    return shown + text[done:]
