"""The controller's log: levels by module, JSON with the keys of a proxy's log, times in UTC."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator

import pytest

from controlplane.cli import exits
from controlplane.cli.serving import process_log
from dataplane.telemetry import process_log as proxy_log

pytestmark = pytest.mark.leaves("the threads that write logs live as long as the process")

NAMES = ("", *process_log.MODULES, *proxy_log.MODULES, "asyncio", "grpc")


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in NAMES}
    yield
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().manager._clear_cache()  # type: ignore[attr-defined]


def written(capfd: pytest.CaptureFixture[str]) -> list[str]:
    logging.getLogger().handlers[0].flush()
    return capfd.readouterr().err.splitlines()


def test_both_planes_write_the_same_keys(capfd: pytest.CaptureFixture[str]) -> None:
    rows = []
    for configure, module in (
        (lambda: process_log.configure(form="json"), "controlplane.xds"),
        (lambda: proxy_log.configure("json", "agent"), "xds"),
    ):
        configure()
        logging.getLogger(module).warning("said %d", 1, extra={"fields": {"gateway": "default/web"}})
        (line,) = written(capfd)
        rows.append(json.loads(line))
    controller, proxy = rows
    assert list(controller) == list(proxy) == ["time", "level", "module", "process", "message", "gateway"]
    assert controller | {"time": ""} == {
        "time": "",
        "level": "warn",
        "module": "controlplane.xds",
        "process": "controller",
        "message": "said 1",
        "gateway": "default/web",
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_times_are_utc_in_every_time_zone(
    form: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu" if os.path.exists("/usr/share/zoneinfo/Asia/Kathmandu") else "NPT-5:45")
    time.tzset()
    try:
        process_log.configure(form=form)
        record = logging.makeLogRecord({"name": "controlplane", "levelno": logging.INFO, "msg": "x"})
        record.created, record.msecs = 1_700_000_000.25, 250.0
        logging.getLogger("controlplane").handle(record)
        (line,) = written(capfd)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "2023-11-14T22:13:20.250Z" in line


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        ("info", {"controlplane", "controlplane.xds"}),
        ("warn", set()),
        ("warn,controlplane.xds=info", {"controlplane.xds"}),
        ("info,controlplane.xds=off", {"controlplane"}),
        ("debug", {"controlplane", "controlplane.xds"}),
    ],
)
def test_levels_by_module(level: str, heard: set[str], capfd: pytest.CaptureFixture[str]) -> None:
    process_log.configure(level)
    for module in ("controlplane", "controlplane.xds", "library"):
        logging.getLogger(module).info("said")
    assert {line.split("\t")[2] for line in written(capfd)} == heard


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("loud", 'unknown level "loud"'),
        ("info,controlplane.xsd=debug", 'unknown module "controlplane.xsd"; did you mean "controlplane.xds"'),
        ("xds=debug", 'unknown module "xds"'),
    ],
)
def test_a_level_that_is_none(level: str, text: str) -> None:
    with pytest.raises(exits.Failure) as failure:
        process_log.configure(level)
    assert failure.value.code == exits.USAGE
    assert failure.value.message.startswith("--log-level: ") and text in failure.value.message
