"""Database URLs without their secrets."""

from __future__ import annotations

import re

_PASSWORD = re.compile(r"(?P<before>://[^:/?#]*:).*(?P<after>@)")
_SECRET_PARAMETER = re.compile(r"(?i)(?P<before>[?&;](?:password|passwd|pwd|secret|token|sslpassword|key)=)[^&;]*")


def redacted(url: str) -> str:
    """`url` with `***` for the password, wherever libpq lets one write it; the rest as it was."""
    without = _PASSWORD.sub(r"\g<before>***\g<after>", url)
    return _SECRET_PARAMETER.sub(r"\g<before>***", without)


def holds_secret(url: str) -> bool:
    """Whether a password stands in the URL itself."""
    return redacted(url) != url
