"""Writers of the default line of the access log, as text and as JSON: compiled from the table of fields, because each
request has one. Fields that few requests have are asked one by one, where there may be some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry import log_fields, log_values
from dataplane.telemetry.log_field import NUMBER, TEXT, Source
from dataplane.telemetry.log_fields import FIELDS, is_of_a_group

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.telemetry.log_field import Group

WriteDefault = Callable[["Exchange", float, "Sequence[Group]"], str]
"""Of an exchange that ended, with a listener or without, and the groups of fields that there are. Each field has a
separator before it."""

SHARED: Final = (
    (("gateway", "listener"), "x.listener", "x.listener.log", "x.listener.log_json", " gateway=- listener=-"),
    (("route", "route_rule"), "x.plan", "x.plan.log", "x.plan.log_json", ""),
)
"""Fields that are text already when configuration has changed: their names, whose they are, their part of a text line
and of a JSON line, and that of a text line where it is empty."""

_IN_SHARED: Final = frozenset(name for names, *_ in SHARED for name in names)
_MORE: Final = tuple(field for field in FIELDS if field.source is None and field.name not in _IN_SHARED)
_GROUPS_AT: Final = next(at for at, field in enumerate(_MORE) if is_of_a_group(field))
_BEFORE: Final = _MORE[:_GROUPS_AT]
_AFTER: Final = tuple(field for field in _MORE[_GROUPS_AT:] if not is_of_a_group(field))


_HAS_MORE: Final = "x.reason or x.attempt or x.retries or x.grpc or x.agent_call or x.attributes or x.trace"
"""Whether there may be fields that few requests have."""


def more_text(x: Exchange, took: float, groups: Sequence[Group]) -> str:
    """Fields that few requests have, as text."""
    own = "".join([field.text(x, took) for field in _BEFORE])
    own += "".join([group.text(x) for group in groups if group.applies(x)])
    return own + "".join([field.text(x, took) for field in _AFTER]) if x.reason else own


def more_json(x: Exchange, took: float, groups: Sequence[Group]) -> str:
    """The same as JSON."""
    own = "".join([field.json(x, took) for field in _BEFORE])
    own += "".join([group.json(x) for group in groups if group.applies(x)])
    return own + "".join([field.json(x, took) for field in _AFTER]) if x.reason else own


def _compiled(as_json: bool) -> WriteDefault:
    steps, line = [], []
    shared = {names[0]: row for names, *row in SHARED}
    for at, field in enumerate(FIELDS):
        if field.name in shared:
            whose, text, json, absent = shared[field.name]
            steps.append(
                f"v{at} = {json} if {whose} else ''" if as_json else f"v{at} = {text} if {whose} else {absent!r}"
            )
            line.append(f"{{v{at}}}")
        elif field.source is not None:
            piece = (_json_piece if as_json else _text_piece)(field.name, field.absent, field.source)
            if field.source.when:
                steps.append(f"v{at} = f'{piece}' if {field.source.when} else ''")
            line.append(f"{{v{at}}}" if field.source.when else piece)
        elif field in _MORE and "{more}" not in line:
            line.append("{more}")
    more = "more_json" if as_json else "more_text"
    body = [*steps, f"more = {more}(x, took, groups) if {_HAS_MORE} else ''", f"return f'{''.join(line)}'"]
    names: dict[str, Any] = {**vars(log_fields), **vars(log_values), **globals()}
    exec("def write(x, took, groups):\n" + "".join(f"    {each}\n" for each in body), names)  # of these tables alone
    made: WriteDefault = names["write"]
    return made


def _text_piece(name: str, absent: str, source: Source) -> str:
    value = source.in_text or (f"bare({source.value})" if source.shape is TEXT else source.value)
    otherwise = f' or "{absent}"' if absent else ""
    return f" {name}={{{value}{otherwise}}}"


def _json_piece(name: str, _absent: str, source: Source) -> str:
    if source.shape is NUMBER:
        return f',"{name}":{{{source.value}}}'
    if source.shape is TEXT:
        return f',"{name}":{{quoted({source.value})}}'
    return f',"{name}":"{{{source.value}}}"'


text: Final = _compiled(False)
json: Final = _compiled(True)
