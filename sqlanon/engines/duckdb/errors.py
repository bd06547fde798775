"""DuckDB's errors as ours: what could quote a value of the data is dropped."""

from __future__ import annotations

import duckdb

from sqlanon.errors import AccessError, Cancelled, ConflictError, DataError, EngineError, SqlanonError

# The messages of these speak of names, paths and limits; those of all others may quote values.
_QUOTABLE = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.IOException,
    duckdb.ParserException,
    duckdb.PermissionException,
    duckdb.SyntaxException,
)


def opening_error(error: duckdb.Error, path: str) -> SqlanonError:
    """Explain, as an error, why the file `path` can't be opened."""
    message = str(error)
    if "Conflicting lock" in message or "Could not set lock" in message:
        return ConflictError(
            f"Another process holds the DuckDB file {path}. DuckDB allows one writing process: end the other one, "
            "or have both open it read-only."
        )
    if "different configuration" in message or "already attached" in message or "file handle conflict" in message:
        return ConflictError(f"This process has the DuckDB file {path} open already in another way; close that first.")
    return AccessError(f"The DuckDB file {path} can't be opened: {_first_line(message)}")


def statement_error(error: BaseException, name: str) -> SqlanonError:
    """Explain, as an error, why the statement from template `name` failed."""
    message = str(error)
    if isinstance(error, duckdb.InterruptException) or message == "Query interrupted":
        return Cancelled("Interrupted.")
    if isinstance(error, duckdb.OutOfMemoryException):
        return EngineError(f"{name}: {_space_remedy(message)}")
    if isinstance(error, duckdb.TransactionException) and "onflict" in message:
        return ConflictError(f"{name}: another session changed the same table at the same time; run again.")
    if "No space left on device" in message:
        return EngineError(f"{name}: the disk is full; free space, or point --temp-directory elsewhere.")
    if "read-only mode" in message:
        return EngineError(f"{name}: the database is open read-only.")
    if isinstance(error, _QUOTABLE):
        return EngineError(f"{name}: {_first_line(message)}")
    kind = DataError if isinstance(error, duckdb.DataError) else EngineError
    return kind(f"{name}: DuckDB failed the statement ({type(error).__name__}).")


def _space_remedy(message: str) -> str:
    if "max_temp_directory_size" in message or "failed to offload" in message:
        return "the disk space for spilled data ran out; free space, or point --temp-directory elsewhere."
    return "out of memory; raise --memory-limit, lower --threads, or give a --temp-directory to spill to."


def _first_line(message: str) -> str:
    return message.partition("\n")[0].strip()
