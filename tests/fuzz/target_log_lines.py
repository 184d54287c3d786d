"""Target `log_lines`: what a client or an upstream wrote, in lines of the access log and of the process log.

Promises: one line for one exchange or record, whatever is in it; both forms of the access log can be read back, say the
same, and have no field twice; each value is the one that was given, within its own field; the line of a record is one,
and what follows it of an exception cannot be taken for another.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

from dataplane.exchange import Exchange
from dataplane.http.heads import Head
from dataplane.telemetry.access_log import AccessLog
from dataplane.telemetry.log_fields import writers
from dataplane.telemetry.log_plan import Added, LogPlan
from dataplane.telemetry.plan import TelemetryPlan
from gatewright import logs as log_forms
from gatewright.cel.errors import CelError
from tests.fuzz.dice import Dice
from tests.fuzz.rig import require

LONGEST = 4096
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_NAME = re.compile(r'[^\s"=\\]+')
NAMES = ("user", "é", "a.b[0]", "http.path", "error", "{x}", "'", "%s")
VALUES: dict[str, Any] = {}
"""What the attributes of `PLANS` are at present: a name that is absent fails, as an expression may."""
HOSTILE = ('" http.status=500 x="', "\n2026-01-01T00:00:00.000Z\terror\trequest\tx=1", "\\", "=", "a b", "\x1b[2J", "")
RECORDS = ("dataplane.server", "xds")
FIELDS = ("key", "error", "count")


def _attribute(name: str) -> Callable[[Exchange], Any]:
    def evaluate(x: Exchange) -> Any:
        if name not in VALUES:
            raise CelError("no such value")
        return VALUES[name]

    return evaluate


def _plan(names: tuple[str, ...], removed: frozenset[str]) -> LogPlan:
    added = tuple(Added.named(name, _attribute(name)) for name in names)
    return LogPlan(added=added, fields=writers(removed) if removed else None)


PLANS = (
    None,
    _plan((*NAMES[:3], *NAMES[5:]), frozenset()),
    _plan(NAMES, frozenset(("http.path", "error"))),
    _plan(("http.path",), frozenset(("http.path", "gateway", "listener", "src.addr", "duration"))),
)
"""As `filters/frontend/access_log` makes them: an added attribute takes a default one's place."""

# kind, then what it is made of
SEEDS = (
    b"",
    bytes((0, 1, 0, 3, 7)) + b'/?a" x',
    bytes((0, 2, 1, 9, 2, 3, 5)) + b"a\nb\xff\x00" + bytes((4, 3, 1, 2)) + b'"',
    bytes((0, 3, 2, 7, 7, 1, 6, 1, 4, 2, 200, 200)),
    bytes((1, 0, 1, 6)) + b"a\r\nb\xe2\x80\xa8" + bytes((2, 1, 3)) + b"x y",
    bytes((1, 1, 0, 9)) + b"\x1b[31m" + bytes((1, 3, 7)),
    bytes((0, 1, 0)) + bytes((7, 6, 5, 4, 3, 2, 1, 0)) * 8,
)


class Logs:
    """Both forms of the access log, with a writer that keeps what it gets."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        timer = SimpleNamespace(cancel=lambda: None)
        text, as_json = (
            AccessLog(self.written.append, lambda seconds, call: timer, form, clock=lambda: 0.0)
            for form in (False, True)
        )
        self.forms = (text, as_json)

    def line(self, as_json: bool, x: Exchange) -> str:
        log = self.forms[as_json]
        log.record(x, 0.0015)
        log.close()
        data = b"".join(self.written)
        self.written.clear()
        require(data.count(b"\n") == 1 and data.endswith(b"\n"), f"{data.count(chr(10).encode())} lines: {data!r}")
        line = data[:-1].decode()
        require(line.replace("\t", "").isprintable(), f"control characters: {line!r}")
        return line


@cache
def logs() -> Logs:
    return Logs()


def _text(dice: Dice) -> str:
    """What may stand in a header, a body or an error: any text, with bytes that are none."""
    if dice.chance(3):
        return dice.one_of(HOSTILE)
    return dice.bytes(60).decode("utf-8", dice.one_of(("surrogateescape", "replace", "backslashreplace"))) * (
        2000 if dice.chance(40) else 1
    )


def _value(dice: Dice, depth: int = 0) -> Any:
    """A value of an expression. Numbers that a double holds, so that reading back is exact."""
    match dice.below(8 if depth < 3 else 5):
        case 0 | 1:
            return _text(dice)
        case 2:
            return dice.one_of((0, -1, 2**63 - 1, -(2**63), dice.byte()))
        case 3:
            return dice.one_of((True, False, None))
        case 4:
            return dice.one_of((0.5, -2.25, float("inf"), float("nan")))
        case 5 | 6:
            return [_value(dice, depth + 1) for _ in range(dice.below(4))]
        case _:
            return {_text(dice): _value(dice, depth + 1) for _ in range(dice.below(4))}


def _exchange(dice: Dice, plan: LogPlan | None) -> Exchange:
    target = b"/" + bytes(octet for octet in dice.bytes(40) if 0x21 <= octet <= 0x7E)  # canonical: what is else is %XX
    x = Exchange(None, dice.one_of((b"GET", b"M-SEARCH")), target, Head(b"\r\n"), started=0.0)
    x.asked_host, x.peer = dice.one_of((b"a.test", b"[::1]", b"")), dice.one_of(("192.0.2.1", "2001:db8::1"))
    x.status, x.detail, x.reason = dice.one_of((0, 200, 502)), _text(dice), dice.one_of(("", "UpstreamFailed"))
    x.listener = SimpleNamespace(
        name="l",
        gateway="default/g",
        log=" gateway=default/g listener=l",
        log_json=',"gateway":"default/g","listener":"l"',
        telemetry=None if plan is None else TelemetryPlan(plan),
    )
    return x


def _wanted(value: Any) -> Any:
    """A value as JSON reads back; what has no place at the top (null) is taken out by the caller."""
    if isinstance(value, float) and value not in (0.5, -2.25):
        return str(value)
    return value


def check_access_log(dice: Dice) -> None:
    plan = dice.one_of(PLANS)
    x = _exchange(dice, plan)
    VALUES.clear()
    for item in plan.added if plan is not None else ():
        if not dice.chance(4):
            VALUES[item.text[1:-1]] = _value(dice)
    text, row = (logs().line(as_json, x) for as_json in (False, True))
    said = json.loads(row, object_pairs_hook=_once)
    require((said.pop("level"), said.pop("scope")) == ("info", "request"), row)
    require(_STAMP.fullmatch(said.pop("time")), row)
    stamp, level, scope, rest = text.split("\t")
    require((level, scope) == ("info", "request") and _STAMP.fullmatch(stamp), text)
    fields = read_fields(rest)
    if said.get("http.host") == "":
        said["http.host"] = "-"  # so that a text line has something there
    require(fields.keys() == said.keys(), f"text has {sorted(fields)}, JSON {sorted(said)}")
    for name, value in said.items():
        require(_same(fields[name], value), f"{name}: {fields[name]!r} in text, {value!r} in JSON")
    wanted = {name: value for name, value in VALUES.items() if value is not None}
    if plan is None or plan.fields is None:
        wanted |= {"http.path": x.asked_target.decode("latin-1"), "http.method": x.method.decode()}
        wanted |= {"error": x.detail} if x.reason and x.detail else {}
    for name, value in wanted.items():
        if isinstance(value, str) and len(value) > 8192:
            value = f"{value[:8192]}...+{len(value) - 8192}"
        if isinstance(value, str | int | bool | float):
            require(
                json.dumps(said[name]) == json.dumps(_wanted(value)), f"{name}: {value!r} became {said.get(name)!r}"
            )
    expected = x.status or 499
    require(said.get("http.status", expected) == expected, f"status {said.get('http.status')}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), f"a field twice: {pairs}")
    return dict(pairs)


def read_fields(text: str) -> dict[str, str]:
    """`name=value name="quoted"` by a naive reader."""
    fields: dict[str, str] = {}
    at = 0
    while at < len(text):
        name = _NAME.match(text, at)
        require(name is not None and text[name.end() : name.end() + 1] == "=", f"no name at {at} of {text!r}")
        assert name is not None
        at = name.end() + 1
        if text[at : at + 1] == '"':
            value, at = json.JSONDecoder().raw_decode(text, at)
        else:
            end = text.find(" ", at)
            end = len(text) if end < 0 else end
            value, at = text[at:end], end
        require(name[0] not in fields, f"{name[0]} twice in {text!r}")
        fields[name[0]] = value
        require(at == len(text) or (text[at] == " " and at + 1 < len(text)), f"no space at {at} of {text!r}")
        at += 1
    return fields


def _same(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return text == value
    return json.dumps(json.loads(text)) == json.dumps(value)


def check_process_log(dice: Dice) -> None:
    message, name = _text(dice), dice.one_of(RECORDS)
    record = logging.makeLogRecord({"name": name, "levelno": logging.ERROR, "msg": "%s", "args": (message,)})
    record.fields = {key: _text(dice) for key in FIELDS[: dice.below(4)]}
    if dice.chance(2):
        error = ValueError(_text(dice))
        record.exc_info = (ValueError, error, None)
    formatters = [log_forms.formatter(form, "worker-0") for form in ("text", "json")]
    text, row = (made.format(record).encode("utf-8", "backslashreplace").decode() for made in formatters)
    said = json.loads(row, object_pairs_hook=_once)
    require("\n" not in row and row.isascii() and row.isprintable(), row)
    require(said.pop("message") == message and said.items() >= record.fields.items(), row)
    first, *more = text.split("\n")
    stamp, level, module, rest = first.split("\t")
    require((level, module) == ("error", name) and _STAMP.fullmatch(stamp), first)
    require(not any(map(_is_control, first.replace("\t", ""))), f"control characters: {first!r}")
    tail = read_fields(rest.removeprefix(_escaped(message)).removeprefix(" "))
    require(tail == {**record.fields, "process": "worker-0"}, f"{tail} of {first!r}")
    require(bool(more) == bool(record.exc_info), "lines of no exception")
    for line in more:
        require(line.startswith(" "), f"it could be a line of its own: {line!r}")
        require(not any(map(_is_control, line)), f"control characters: {line!r}")


def _is_control(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Zl", "Zp")


def _escaped(message: str) -> str:
    text = "".join(letter.encode("unicode_escape").decode() if _is_control(letter) else letter for letter in message)
    return text.encode("utf-8", "backslashreplace").decode()


def check(data: bytes) -> None:
    """An even first byte: the access log; an odd one: the process log."""
    if len(data) > LONGEST:
        return
    dice = Dice(data)
    if dice.chance(2):
        check_process_log(dice)
    else:
        check_access_log(dice)
