"""Secret keys of draws, from the randomness of the operating system."""

from __future__ import annotations

import secrets

from sqlanon.sql import RedactedValue

KEY_BYTES = 16  # as many as a digest has; with a row's number they fill one block, and longer keys are no stronger


def secret_key() -> RedactedValue:
    """Draw a key from the randomness of the operating system; no record and no log holds it."""
    return RedactedValue(secrets.token_hex(KEY_BYTES))
