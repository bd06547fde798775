"""When a job runs: the five fields of cron, read and said as systemd says them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlanon.errors import PolicyError

_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?")
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12), ("day of the week", 0, 7))
_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


@dataclass(frozen=True)
class Moments:
    """A schedule in cron's five fields: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday)."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Moments:
        """Read such a schedule: each field is `*`, numbers, ranges `1-5`, steps `*/15`, or several with commas.

        Raises PolicyError for anything else.
        """
        fields = text.split()
        if len(fields) != len(_FIELDS):
            raise PolicyError(
                f"'{text}' is not a schedule: write minute, hour, day of the month, month and day of the week, such as "
                "'30 2 * * *' for half past two every night."
            )
        read = [_read(field, *of) for field, of in zip(fields, _FIELDS, strict=True)]
        weekdays = tuple(sorted({day % 7 for day in read[4]}))
        return cls(" ".join(fields), read[0], read[1], read[2], read[3], weekdays)

    @property
    def calendar(self) -> list[str]:
        """The same as `OnCalendar` has it, in UTC; two lines where cron takes either kind of day."""
        time = f"{_listed(self.hours, 0, 23)}:{_listed(self.minutes, 0, 59)}:00 UTC"
        months, days = _listed(self.months, 1, 12), _listed(self.days, 1, 31)
        weekdays = ",".join(_DAYS[day] for day in self.weekdays) if len(self.weekdays) < len(_DAYS) else ""
        if weekdays and days != "*":
            return [f"*-{months}-{days} {time}", f"{weekdays} *-{months}-* {time}"]
        return [" ".join(part for part in (weekdays, f"*-{months}-{days}", time) if part)]


def _read(field: str, name: str, least: int, greatest: int) -> tuple[int, ...]:
    found: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise PolicyError(
                f"'{field}' is not a {name}: write *, numbers, ranges such as 1-5, or steps such as */15."
            )
        first, last, step = match.groups()
        low = least if first is None else int(first)
        high = int(last) if last is not None else greatest if first is None or step is not None else low
        if not least <= low <= high <= greatest or step == "0":
            raise PolicyError(f"'{field}' is not a {name}: it is from {least} to {greatest}.")
        found.update(range(low, high + 1, int(step or 1)))
    return tuple(sorted(found))


def _listed(values: tuple[int, ...], least: int, greatest: int) -> str:
    return "*" if len(values) == greatest - least + 1 else ",".join(f"{value:02}" for value in values)
