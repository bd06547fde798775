"""PostgreSQL's errors as ours: what could quote a value of the data, or a secret, is dropped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sqlanon.engines.urls import redacted
from sqlanon.errors import (
    AccessError,
    Cancelled,
    ConflictError,
    DataError,
    EngineError,
    PolicyError,
    ProtectionError,
    SqlanonError,
    VerificationError,
)

if TYPE_CHECKING:
    import psycopg

_NAMES = ("42501", "42710", "42809", "42P06", "42P07", "42P16")
_LIMITS = ("54001", "54011", "54023")
QUOTABLE = ("25", "2B", "3D", "55", "58", *_NAMES, *_LIMITS)
"""Beginnings of SQLSTATEs whose primary message speaks of names and limits; messages of all others may quote values."""
# The same, if the server was reading the statement itself: casts of values to names or to queries end in these too.
_QUOTABLE_WHEN_READ = ("0A", "3F", "42", "54")
OWN_ERRORS: dict[str, type[SqlanonError]] = {
    "SA001": ProtectionError,
    "SA002": VerificationError,
    "SA003": ConflictError,
    "SA004": PolicyError,
    "SA005": AccessError,
    "42501": AccessError,
}
"""SQLSTATEs of the procedures of jobs, whose messages are the project's own; and of a privilege that they lack."""
_OF_VALUES = ("22", "23514")  # data exceptions, and what the check of a domain refuses
_CONNECTION_STATES = ("08", "57P01", "57P02", "57P03")
_LIMITS_OF_SESSIONS = {
    "25P03": "idle_in_transaction_session_timeout",
    "25P04": "transaction_timeout",
    "57P05": "idle_session_timeout",
}
READ_ONLY = "25006"
_TOO_LONG = (
    "A statement took too long: the server stopped it after the statement timeout, which is that of --statement-timeout"
    " or, without it, the statement_timeout set for the role or the database. Give a longer one by --statement-timeout."
)


def connection_error(error: psycopg.Error, url: str, password: object) -> SqlanonError:
    """Explain, as an error, why the server can't be reached."""
    reason = " ".join(str(error).split())
    for secret in (password, os.environ.get("PGPASSWORD")):
        if isinstance(secret, str) and secret:
            reason = reason.replace(secret, "***")
    return AccessError(f"Can't connect to {redacted(url)}: {reason}")


def read_only_error(is_standby: bool | None = None) -> AccessError:
    """Explain, as an error, why this session can write nothing; `is_standby` is None where that is not known."""
    where = "the server is a standby, which only reads: connect to its primary"
    setting = (
        "default_transaction_read_only is set for the role or the database: connect as a role that may write, or add "
        "?options=-c%20default_transaction_read_only%3Doff to the URL"
    )
    reasons = {True: where, False: setting, None: f"either {where}; or {setting}"}
    return AccessError(f"The session is read-only, so that nothing was written: {reasons[is_standby]}.")


def lock_error(name: str, holders: str | None) -> ConflictError:
    """Explain, as an error, that a lock was waited for in vain; holders: see `ConflictError`."""
    held = "" if holders is None else f": {holders}"
    return ConflictError(f"{name}: another session holds a lock that this one waited for{held}; run again.", holders)


def statement_error(error: psycopg.Error, name: str, is_broken: bool) -> SqlanonError:
    """Explain, as an error, why the statement from template `name` failed; `is_broken`: the connection is gone."""
    state = error.sqlstate or ""
    if state in _LIMITS_OF_SESSIONS:
        limit = _LIMITS_OF_SESSIONS[state]
        return EngineError(f"The server ended the session, by the {limit} set for the role or the database.")
    if is_broken or state.startswith(_CONNECTION_STATES):
        return EngineError(f"{name}: the connection to the PostgreSQL server was lost.")
    known = _known_error(error, state, name)
    if known is not None:
        return known
    read = error.diag.statement_position is not None and error.diag.context is None
    if state.startswith((*QUOTABLE, *_QUOTABLE_WHEN_READ) if read else QUOTABLE):
        return EngineError(f"{name}: {error.diag.message_primary}")
    shown = f", SQLSTATE {state}" if state else ""
    kind = DataError if state.startswith(_OF_VALUES) else EngineError
    return kind(f"{name}: PostgreSQL failed the statement ({type(error).__name__}{shown}).")


def _known_error(error: psycopg.Error, state: str, name: str) -> SqlanonError | None:
    message = error.diag.message_primary or ""
    if state in OWN_ERRORS and state.startswith("SA"):
        return OWN_ERRORS[state](message)
    if state == "57014":
        return EngineError(_TOO_LONG) if "statement timeout" in message else Cancelled("Interrupted.")
    if state == READ_ONLY:
        return read_only_error()
    if state == "42501":
        return AccessError(_privilege_message(message))
    if state == "55P03":
        return lock_error(name, None)
    if state in ("40001", "40P01"):
        return ConflictError(f"{name}: another session changed the same table at the same time; run again.")
    if state == "22021":
        return DataError(
            f"{name}: text of the database, or a name in it, is no valid UTF-8, as a database of encoding SQL_ASCII may"
            " hold. Rename such tables and columns, and convert such text in a view: convert_from(column::bytea,"
            " 'LATIN1')."
        )
    if state == "22P05":
        return PolicyError(
            f"{name}: the encoding of the database has no bytes for a character of the statement, as of a name or a"
            " label in the policy or the command: write others, or use a database in UTF8."
        )
    if state == "53100":
        return EngineError(f"{name}: the disk of the PostgreSQL server is full.")
    if state == "53200":
        return EngineError(f"{name}: the PostgreSQL server is out of memory; lower --memory-limit or --threads.")
    if state == "53400":
        return EngineError(f"{name}: the server's limit of temporary files is reached (temp_file_limit).")
    return None


def _privilege_message(message: str) -> str:
    if "row-level security" in message:
        return (
            f"Row-level security would hide rows: {message}. Connect as a role that sees all rows "
            "(the table's owner, or one with BYPASSRLS)."
        )
    return f"The role lacks a privilege: {message}."
