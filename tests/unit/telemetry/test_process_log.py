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
    for level in ("debug", "info", "warning", "error"):
        getattr(logging.getLogger(module), level)(level)
    assert [json.loads(line)["message"] for line in written(capfd).splitlines()] == heard


def test_levels_can_be_taken_back(capfd: pytest.CaptureFixture[str]) -> None:
    process_log.configure("text", "agent")
    process_log.set_levels("info", {"xds": "off"})
    process_log.set_levels("info", {})
    logging.getLogger("xds").info("back")
    assert "back" in written(capfd)
