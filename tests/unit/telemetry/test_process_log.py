"""The process log: both forms, levels by module."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from dataplane.telemetry import process_log


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, raises = root.handlers[:], root.level, logging.raiseExceptions
    yield
    process_log.set_levels("info", {})
    root.handlers[:], logging.raiseExceptions = handlers, raises
    root.setLevel(level)


def written(capfd: pytest.CaptureFixture[str]) -> str:
    logging.getLogger().handlers[0].flush()
    return capfd.readouterr().err


def test_text_lines_have_the_columns_of_the_access_log(capfd: pytest.CaptureFixture[str]) -> None:
    process_log.configure("text", "agent")
    process_log.set_levels("info", {})
    logging.getLogger("dataplane.agent.sockets").info(
        "bind opened", extra={"fields": {"address": "[::]:80", "reason": "two words", "empty": ""}}
    )
    time, level, module, rest = written(capfd).rstrip("\n").split("\t")
    assert len(time) == len("2026-11-21T13:00:00.000Z") and time.endswith("Z")
    assert (level, module) == ("info", "dataplane.agent.sockets")
    assert rest == 'bind opened address=[::]:80 reason="two words" empty="" process=agent'


def test_json_lines_are_objects(capfd: pytest.CaptureFixture[str]) -> None:
    process_log.configure("json", "worker-1")
    process_log.set_levels("info", {})
    try:
        raise RuntimeError("a\nb")
    except RuntimeError:
        logging.getLogger("dataplane.worker").exception("it\nfailed", extra={"fields": {"pid": 1}})
    (line,) = written(capfd).splitlines()
    row = json.loads(line)
    assert (row["level"], row["module"], row["process"]) == ("error", "dataplane.worker", "worker-1")
    assert (row["message"], row["pid"]) == ("it\nfailed", 1)
    assert "RuntimeError" in row["exception"]


def test_an_exception_cannot_be_taken_for_a_record(capfd: pytest.CaptureFixture[str]) -> None:
    process_log.configure("text", "agent")
    try:
        raise ValueError("bad:\n2026-01-01T00:00:00.000Z\terror\txds\tforged\r\x1b[2J")
    except ValueError:
        logging.getLogger("dataplane.worker").exception("failed")
    first, *more = written(capfd).rstrip("\n").split("\n")
    assert "\tfailed process=agent" in first
    assert more[-1] == "  2026-01-01T00:00:00.000Z\\terror\\txds\\tforged\\r\\x1b[2J"
    assert all(line.startswith("  ") for line in more)


def test_a_message_cannot_begin_a_line_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    process_log.configure("text", "agent")
    process_log.set_levels("info", {})
    logging.getLogger("xds").info("refused %s", "a\n2026-11-21T13:00:00.000Z\terror\tfake\tline")
    assert len(written(capfd).splitlines()) == 1


@pytest.mark.parametrize(
    ("default", "modules", "module", "heard"),
    [
        ("info", {}, "xds", ["info", "warning", "error"]),
        ("warn", {}, "xds", ["warning", "error"]),
        ("off", {}, "xds", []),
        ("info", {"xds": "off"}, "xds", []),
        ("info", {"dataplane.http": "debug"}, "dataplane.http", ["debug", "info", "warning", "error"]),
        ("info", {"dataplane.http": "debug"}, "dataplane.proxy", ["info", "warning", "error"]),
        ("error", {"dataplane": "info"}, "dataplane.agent.sockets", ["info", "warning", "error"]),
    ],
)
def test_levels(
    capfd: pytest.CaptureFixture[str], default: str, modules: dict[str, str], module: str, heard: list[str]
) -> None:
    process_log.configure("json", "agent")
    process_log.set_levels(default, modules)
    levels = ("debug", "info", "warning", "error")
    for level in levels:
        getattr(logging.getLogger(module), level)(level)
    found = [json.loads(line)["message"] for line in written(capfd).splitlines()]
    assert [text for text in found if text in levels] == heard  # threads of earlier tests may speak as well


def test_levels_can_be_taken_back(capfd: pytest.CaptureFixture[str]) -> None:
    process_log.configure("text", "agent")
    process_log.set_levels("info", {"xds": "off"})
    process_log.set_levels("info", {})
    logging.getLogger("xds").info("back")
    assert "back" in written(capfd)


def test_libraries_speak_only_of_what_went_wrong_unless_everything_is_wanted() -> None:
    for default, level in (("debug", logging.WARNING), ("info", logging.WARNING), ("error", logging.ERROR)):
        process_log.set_levels(default, {})
        assert {logging.getLogger(name).level for name in ("asyncio", "grpc")} == {level}


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (logging.DEBUG, "debug"),
        (logging.INFO, "info"),
        (logging.WARNING, "warn"),
        (logging.ERROR, "error"),
        (logging.CRITICAL, "error"),
        (35, "info"),
    ],
)
def test_a_record_has_the_name_of_its_level_and_its_time(
    capfd: pytest.CaptureFixture[str], number: int, name: str
) -> None:
    for form in ("text", "json"):
        process_log.configure(form, "agent")
        record = logging.makeLogRecord(
            {"name": "xds", "levelno": number, "msg": "a", "created": 1_800_000_000.25, "msecs": 250.0, "fields": "odd"}
        )
        logging.getLogger().handlers[0].handle(record)
        line = written(capfd).rstrip("\n")
        if form == "json":
            assert json.loads(line) == {
                "time": "2027-01-15T08:00:00.250Z",
                "level": name,
                "module": "xds",
                "process": "agent",
                "message": "a",
            }
        else:
            assert line == f"2027-01-15T08:00:00.250Z\t{name}\txds\ta process=agent"


def test_lines_that_were_lost_are_told_of_when_there_is_room_again(capfd: pytest.CaptureFixture[str]) -> None:
    process_log.configure("text", "agent")
    process_log.configure("text", "agent")  # the same writer
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, process_log.Handler)
    handler._changed("it is not read fast enough", 0)
    assert written(capfd) == ""
    handler._changed("", 7)
    line = written(capfd)
    assert "\twarn\t" in line and "7 lines of this log were lost before this one" in line
