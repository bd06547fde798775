"""Schedules of jobs in cron's five fields, and launchers outside of the database: crontabs, and units of systemd.

A launcher is given the environment that a job needs; what of it is secret is not written down.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

from sqlanon.catalog import Job
from sqlanon.engines.dialects import Dialect
from sqlanon.engines.urls import redacted, scrubbed
from sqlanon.errors import PolicyError
from sqlanon.support.environment import references

SECRETS = Path("/etc/sqlanon")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", re.ASCII)
_FIELDS = (
    *(("a minute", 0, 59), ("an hour", 0, 23), ("a day of the month", 1, 31)),
    *(("a month", 1, 12), ("a day of the week", 0, 7)),
)
_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_HIDDEN = re.compile(r"([?&])[^&=]*=\*\*\*(?:&|$)")
_SECRET_NAME = re.compile(r"pass(?!file)|pwd|secret|token|(?<!ssl)key|credential", re.IGNORECASE)
_FILES = ("PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR", "PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT", "PGSSLCRL")
_PLACEHOLDER = "PLACEHOLDER"


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
        read = [_read_field(field, *of) for field, of in zip(fields, _FIELDS, strict=True)]
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


def _read_field(field: str, name: str, least: int, greatest: int) -> tuple[int, ...]:
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


@dataclass(frozen=True)
class Environment:
    """Variables by name.

    shown: those that may be written down.
    secret: the names of those that may not, and come from a file of their own.
    has_password: whether libpq must be told a password besides, which it reads from a file of its own.
    """

    shown: dict[str, str] = field(default_factory=dict)
    secret: tuple[str, ...] = ()
    has_password: bool = False

    @classmethod
    def of_url(cls, url: str) -> Environment:
        """Build the environment that names the catalog of a URL."""
        return cls({"SQLANON_URL": without_secrets(url)}, (), redacted(url) != url)

    @classmethod
    def of_policy(cls, text: str) -> Environment:
        """The variables that a policy's text refers to, as far as they are set."""
        named = {name: os.environ[name] for name in references(text) if name in os.environ}
        secret = tuple(name for name, value in named.items() if _is_secret(text, name, value))
        return cls({name: value for name, value in named.items() if name not in secret}, secret)

    def joined(self, other: Environment) -> Environment:
        """The variables of both; one that is secret in either is."""
        secret = {*self.secret, *other.secret}
        shown = {name: value for name, value in (other.shown | self.shown).items() if name not in secret}
        return Environment(shown, tuple(sorted(secret)), self.has_password or other.has_password)

    def with_parts_of(self, dialect: type[Dialect]) -> Environment:
        """The same and what an engine's sessions take from this environment where a URL lacks it."""
        variables = {  # those that name a file do so from any directory
            name: str(Path(value).absolute()) if name in _FILES and Path(value).exists() else value
            for name, value in dialect.variables().items()
        }
        secret = {*self.secret, *(name for name, value in variables.items() if scrubbed(value) != value)}
        password = dialect.password_variable in {*os.environ} - secret
        return Environment(variables, tuple(secret), password).joined(self)


def without_secrets(url: str) -> str:
    """The URL as it still reaches its database once passwords come from elsewhere."""
    kept = redacted(url)
    while (shorter := _HIDDEN.sub(r"\1", kept)) != kept:
        kept = shorter
    return kept.rstrip("?&") if kept != redacted(url) else kept


def _is_secret(text: str, name: str, value: str) -> bool:
    """Tell whether a variable is secret by name or value, or stands where a password does in a URL of the text."""
    if _SECRET_NAME.search(name) or redacted(value) != value:
        return True
    reference = f"${{{name}}}"
    words = [word for line in text.splitlines() for word in line.split() if reference in word]
    return any(_is_hidden(word.replace(reference, put), put) for word in words for put in (_PLACEHOLDER, value) if put)


def _is_hidden(word: str, part: str) -> bool:
    """Tell whether a part of a URL, as YAML writes it, is not to be shown."""
    url = word.strip("\"',{}[]")
    return redacted(url).count(part) < url.count(part)


@dataclass(frozen=True)
class JobLaunch:
    """The launch of a job: `job run` with the environment it needs, which is written down without secrets.

    catalog: what tells the job's catalog from all others.
    directory: where it is started from, as URLs and files may be relative; None where nothing is.
    policy: whose catalog the job is in; None where the environment names the catalog.

    Raises PolicyError where any of it has a line break or another control character.
    """

    job: Job
    catalog: str
    environment: Environment
    schedule: CronSchedule
    directory: Path | None = None
    policy: Path | None = None

    def __post_init__(self) -> None:
        places = {"the catalog's name": self.catalog, "the directory": self.directory, "the policy's path": self.policy}
        written = {what: str(place) for what, place in places.items() if place is not None} | self.environment.shown
        wrong = [what for what, text in written.items() if not text.isprintable()]
        if wrong:
            raise PolicyError(f"A schedule is written in lines, and {wrong[0]} has a character that can't be printed.")

    @property
    def _arguments(self) -> list[str]:
        policy = [] if self.policy is None else ["--policy", str(self.policy)]
        return ["job", "run", self.job.name, *policy, "--quiet"]

    @property
    def command(self) -> str:
        """The command for a shell."""
        return shlex.join([_program(), *self._arguments])

    @property
    def passwords(self) -> Path:
        """The file of passwords, as libpq reads it."""
        return SECRETS / f"{self.job.name}.pgpass"

    @property
    def secrets(self) -> Path:
        """The file of the environment's secrets."""
        return SECRETS / f"{self.job.name}.env"

    def crontab(self, user: str | None = None) -> str:
        """The line of a crontab, with its comments; `user` is a column of files in /etc/cron.d alone."""
        passwords = {"PGPASSFILE": str(self.passwords)} if self.environment.has_password else {}
        values = [f"{name}={shlex.quote(value)}" for name, value in (self.environment.shown | passwords).items()]
        run = " ".join([*values, self.command])
        if self.environment.secret:
            run = f"set -a && . {self.secrets} && set +a && {run}"
        if self.directory is not None:
            run = f"cd {shlex.quote(str(self.directory))} && {run}"
        escaped = run.replace("%", r"\%")  # cron takes a plain one for the end of the line
        line = " ".join([self.schedule.text, *([_checked_user(user)] if user is not None else []), escaped])
        return f"# {_title(self.job)}; in the time zone of this machine.\n{self.mark}\n{self._advice}{line}\n"

    def service(self, user: str) -> str:
        """The service unit; it runs as `user`."""
        values = dict(self.environment.shown)
        credential = secrets = ""
        if self.environment.has_password:
            values.pop("PGPASSFILE", None)
            credential = f"LoadCredential=pgpass:{self.passwords}\nEnvironment=PGPASSFILE=%d/pgpass\n"
        if self.environment.secret:
            secrets = f"EnvironmentFile={self.secrets}\n"
        where = "" if self.directory is None else f"WorkingDirectory={_literal(str(self.directory))}\n"
        variables = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in values.items())
        words = [_quoted(_program()), *(_quoted(word) if word.startswith("/") else word for word in self._arguments)]
        return (
            f"# {_title(self.job)}.\n{self.mark}\n{self._advice}"
            f"[Unit]\nDescription={_literal(_title(self.job))}\nWants=network-online.target\nAfter=network-online.target\n\n"
            f"[Service]\nType=oneshot\nUser={_checked_user(user)}\n{where}{credential}{secrets}{variables}"
            f"ExecStart={' '.join(words).replace('$', '$$')}\n"
        )

    def timer(self) -> str:
        """The timer unit."""
        calendar = "".join(f"OnCalendar={line}\n" for line in self.schedule.calendar)
        return (
            f"{self.mark}\n[Unit]\nDescription=When to run: {_literal(_title(self.job))}\n\n"
            f"[Timer]\n{calendar}Persistent=true\n\n"
            "[Install]\nWantedBy=timers.target\n"
        )

    def files(self, scheduler: str, user: str) -> dict[str, str]:
        """The files of a scheduler, by name."""
        name = f"sqlanon-{self.job.name}"
        if scheduler == "cron":
            return {name: self.crontab(user)}
        return {f"{name}.service": self.service(user), f"{name}.timer": self.timer()}

    @property
    def mark(self) -> str:
        """The line by which files of this job are known from those of another catalog's job of the same name."""
        return f"# The job is in the catalog {self.catalog}."

    @property
    def _advice(self) -> str:
        advice = ""
        if self.environment.has_password:
            advice += (
                f"# The password is in {self.passwords}, for its owner alone (chmod 600): a line"
                " host:port:database:role:password.\n"
            )
        if self.environment.secret:
            lines = ", ".join(f"{name}='...'" for name in self.environment.secret)
            advice += f"# Secrets are in {self.secrets}, for its owner alone (chmod 600), each on a line: {lines}.\n"
        return advice


def _checked_user(user: str) -> str:
    """A user's name; PolicyError where it is none that schedulers take."""
    if not _USER.fullmatch(user):
        raise PolicyError(
            "--user: a user's name is of at most 32 letters, digits, _, . and -, and begins with a letter or _."
        )
    return user


def _title(job: Job) -> str:
    return f"sqlanon job {job.name}, from {_plain(job.source)} to {_plain(job.release)}"


def _plain(text: str) -> str:
    """A name in one line."""
    return "".join(char for char in text if char.isprintable())


def _literal(text: str) -> str:
    """A text of a unit file, where `%` begins a specifier."""
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    """A word of a unit file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_literal(escaped)}"'


def _program() -> str:
    """This program, as others find it."""
    program = Path(sys.executable).with_name("sqlanon")
    return str(program) if program.exists() else "sqlanon"
