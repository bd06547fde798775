"""Statements that the catalog keeps for a procedure, and the digests by which the procedure knows them again.

The procedure executes them, so it must notice a change. Everybody may read its text, and so the digests: a random part
keeps people from guessing values of the data until a digest fits.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace

from sqlanon.catalog import Job


def sealed(job: Job) -> Job:
    """The job with a random part in each of its statements."""
    return replace(
        job,
        inspection=_with_random_part(job.inspection),
        recoding=_with_random_part(job.recoding),
        assigning=_with_random_part(job.assigning),
        showing=_with_random_part(job.showing),
    )


def digests_of(job: Job) -> dict[str, str]:
    """The digests of a job's statements, by their columns."""
    statements = {
        "inspection": job.inspection,
        "recoding": job.recoding,
        "assigning": job.assigning,
        "showing": job.showing,
    }
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in statements.items() if text is not None}


def _with_random_part(statement: str | None) -> str | None:
    return None if statement is None else f"/* {secrets.token_hex(16)} */\n{statement}"
