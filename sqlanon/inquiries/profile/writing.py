"""Texts of drafts: what YAML takes for a text or a comment, and shares as percent."""

from __future__ import annotations

import json
import re


def quoted(text: str) -> str:
    """A double-quoted YAML text on one line."""
    escaped = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", escaped)


def comment(text: str) -> str:
    """Text that can't end a comment's line."""
    return "".join(char if char.isprintable() else " " for char in text)


def percent(share: float) -> str:
    """A share between 0 and 1."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if share < 1 else "100 %"
