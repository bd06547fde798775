"""Options that a file shows by itself, for a draft: only those of which no other would do as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlanon.engines.number_marks import CUSTOMARY, NumberMarks, fewest
from sqlanon.engines.read_options import FileReading, ReadColumn, ReadOptions

_LEFT_TO_PEOPLE = ("time",)  # 10:30 may be a length of time


def suggested(reading: FileReading) -> ReadOptions:
    """The options by which a file was read, and those that would make more of columns that stayed text.

    Marks of numbers and formats of dates hold for the whole file, so that they are suggested where one fits all columns
    that need any. Columns of a file without names are called as they were.
    """
    options, columns = reading.options, reading.columns
    marks = _marks(columns)
    if marks is not None and options.thousands is None and options.decimal in (None, marks.decimal):
        decimal = None if marks.decimal == "." else marks.decimal
        options = replace(options, decimal=options.decimal or decimal, thousands=marks.thousands)
    kinds = {one.name: one.fits.type for one in columns}
    types = {name: type_ for name, type_ in kinds.items() if type_ is not None and type_ not in _LEFT_TO_PEOPLE}
    options = replace(
        options, types={**types, **options.types}, dates=tuple(dict.fromkeys((*options.dates, *_dates(columns))))
    )
    if options.header is False and not options.names:
        options = replace(options, names=tuple(one.name for one in columns))
    return options


def _marks(columns: Iterable[ReadColumn]) -> NumberMarks | None:
    """The marks that all numbers of the file have, where some have other marks than those of databases."""
    sets = [set(one.fits.marks) for one in columns if one.fits.marks or one.is_fraction]
    if not any(one.fits.marks and one.type == "VARCHAR" for one in columns):
        return None
    common = set.intersection(*sets)
    least = fewest([marks for marks in CUSTOMARY if marks in common])
    return least[0] if len(least) == 1 else None


def _dates(columns: Sequence[ReadColumn]) -> list[str]:
    """The formats that are the only ones to fit a column, and leave no other column in doubt.

    Months are left to people, as they lack a day, and years of two digits, as `1.2.03` may be a number of a version.
    """
    single = [one.fits.dates[0] for one in columns if len(one.fits.dates) == 1]
    only = {form for form in single if "%d" in form and "%Y" in form}
    if any(len(only.intersection(one.fits.dates)) > 1 for one in columns):
        return []
    return sorted(only)
