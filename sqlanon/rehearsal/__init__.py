"""What a run would send to the database, without sending it."""

from sqlanon.rehearsal.rehearse import Rehearsal, rehearse

__all__ = ["Rehearsal", "rehearse"]
