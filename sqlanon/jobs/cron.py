"""Schedules of jobs: the five fields of cron, read and said as systemd says them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlanon.errors import PolicyError

_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", re.ASCII)
_FIELDS = (
    *(("a minute", 0, 59), ("an hour", 0, 23), ("a day of the month", 1, 31)),
    *(("a month", 1, 12), ("a day of the week", 0, 7)),
)
_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


@dataclass(frozen=True)
class CronSchedule:
    """A schedule in cron's five fields: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday)."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> CronSchedule:
        """Read such a schedule: each field is `*`, numbers, ranges `1-5`, steps `*/15`, or several with commas.

        It takes what every cron takes, pg_cron's included, without names of months and days.

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
        dates = [(weekdays, days)] if self._wants_both_days else [("", days), (weekdays, "*")]
        if ("", "*") in dates:  # every day is among them
            dates = [("", "*")]
        return [" ".join(part for part in (weekday, f"*-{months}-{day}", time) if part) for weekday, day in dates]

    @property
    def _wants_both_days(self) -> bool:
        """Tell whether a day must be of the month's and of the week's: cron goes by the first sign of both fields."""
        _, _, day, _, weekday = self.text.split(" ")
        return day.startswith("*") or weekday.startswith("*")


def _read(field: str, name: str, least: int, greatest: int) -> tuple[int, ...]:
    numbers: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise PolicyError(f"'{field}' is not {name}: write *, numbers, ranges such as 1-5, or steps such as */15.")
        first, last, step = match.groups()
        low = least if first is None else int(first)
        high = greatest if first is None else low if last is None else int(last)
        if first is not None and last is None and step is not None:
            raise PolicyError(
                f"'{field}' is not {name}: cron takes steps of * or of a range alone, such as {low}-{greatest}/{step}."
            )
        if not (least <= low <= greatest and least <= high <= greatest):
            raise PolicyError(f"'{field}' is not {name}: it is from {least} to {greatest}.")
        if low > high:
            raise PolicyError(f"'{field}' is not {name}: the range {low}-{high} runs backwards.")
        if step is not None and int(step) == 0:
            raise PolicyError(f"'{field}' is not {name}: a step is 1 or more.")
        numbers.update(range(low, high + 1, int(step or 1)))
    return tuple(sorted(numbers))


def _listed(values: tuple[int, ...], least: int, greatest: int) -> str:
    return "*" if len(values) == greatest - least + 1 else ",".join(f"{value:02}" for value in values)
