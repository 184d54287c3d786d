"""The standalone file as a source: what is read, what a reload says, and what a bad file changes: nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dataplane.agent import file_source
from dataplane.agent.file_source import BadFile, FileSource
from dataplane.agent.reader import LocalReader
from dataplane.link.messages import Record
from dataplane.telemetry.metrics import Metrics
from tests.harness.patience import PATIENCE
from tests.harness.saved import save
from tests.harness.waiting import until

GOOD = "binds:\n- port: {port}\n  listeners:\n  - name: a\n    routes:\n    - backends: [{{host: '127.0.0.1:1'}}]\n"


def text(port: int) -> str:
    return GOOD.format(port=port)


class Applied:
    """What a source gave, state by state."""

    def __init__(self) -> None:
        self.states: list[set[str]] = []
        self.refuse: dict[str, str] = {}
        self.news = asyncio.Event()

    async def __call__(self, records: Sequence[Record]) -> Mapping[str, str]:
        self.states.append({record.name for record in records if record.name.startswith("bind/")})
        self.news.set()
        return self.refuse

    async def wait_for(self, count: int) -> set[str]:
        async with asyncio.timeout(PATIENCE):
            while len(self.states) < count:
                self.news.clear()
                await self.news.wait()
        return self.states[-1]


@asynccontextmanager
async def following(file: Path) -> AsyncIterator[Applied]:
    applied = Applied()
    reader = LocalReader()
    source = FileSource(file, file_source.read(file, (), reader), applied, Metrics.in_memory(), (), reader)
    task = asyncio.create_task(source.run())
    try:
        await applied.wait_for(1)
        yield applied
    finally:
        task.cancel()
        await asyncio.wait({task})


def bind(port: int) -> set[str]:
    return {f"bind/default/standalone/{port}"}


def test_a_good_file_gives_resources_and_settings(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("config: {workers: 3, adminAddr: 'off', logging: {format: json}}\n" + text(8080))
    loaded = file_source.read(file, (), LocalReader())
    assert "bind/default/standalone/8080" in {record.name for record in loaded.records}
    assert (loaded.defaults.workers, loaded.defaults.admin, loaded.defaults.log_format) == (3, "off", "json")


def test_no_repr_shows_what_is_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text(8080).replace("name: a", "name: hidden"))
    loaded = repr(file_source.read(file, (), LocalReader()))
    assert loaded.startswith("Loaded(") and not any(word in loaded for word in ("hidden", "8080", "Defaults", "binds"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"binds: [", ["c.yaml:"]),
        (b"binds:\n- port: 99999\n", ["c.yaml:2", "port"]),
        (b"binds:\n- prot: 80\n", ["c.yaml:2", "prot"]),
        (b"\xff\xfe", ["c.yaml", "cannot be read"]),
        (b"", ["c.yaml", "empty"]),
        (b"config: {logging: {level: 'nix=debug'}}\nbinds: []\n", ["nix"]),
    ],
)
def test_a_bad_file_is_told_with_file_and_line(tmp_path: Path, content: bytes, words: list[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_bytes(content)
    with pytest.raises(BadFile) as bad:
        file_source.read(file, ("xds",), LocalReader())
    told = "\n".join(bad.value.args)
    assert all(word in told for word in words), told


async def test_a_bad_file_changes_nothing_and_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text(1))
    async with following(file) as applied:
        save(file, "binds:\n- port: none\n")
        async with asyncio.timeout(PATIENCE):
            while "last good configuration stays" not in caplog.text:
                await asyncio.sleep(0.01)
        await asyncio.sleep(1.2)  # looked at again, not told again
        assert caplog.text.count("last good configuration stays") == 1
        assert f"{file}:2" in caplog.text
        assert applied.states == [bind(1)]
        save(file, text(1))
        await asyncio.sleep(0.3)
        save(file, text(5))
        assert (await applied.wait_for(2)) in (bind(1), bind(5))


async def test_what_changed_and_what_is_refused_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "c.yaml"
    file.write_text(text(1))
    async with following(file) as applied:
        applied.refuse = {"bind/default/standalone/2": "port 2 is in use"}
        save(file, "config: {workers: 7}\n" + text(2))
        await applied.wait_for(2)
        async with asyncio.timeout(PATIENCE):
            while "restart the proxy" not in caplog.text:
                await asyncio.sleep(0.01)
        fields = next(r.fields for r in caplog.records if getattr(r, "fields", {}).get("added"))  # type: ignore[attr-defined]
        assert "bind/default/standalone/2" in fields["added"] and "bind/default/standalone/1" in fields["removed"]
        assert "port 2 is in use" in caplog.text


@pytest.mark.parametrize(("listeners", "more"), [(8, ""), (9, ""), (10, " and 1 more"), (12, " and 3 more")])
async def test_a_line_names_ten_changes_and_counts_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, listeners: int, more: str
) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "c.yaml"
    file.write_text("binds: []")
    names = [f"l{number:02}" for number in range(listeners)]
    async with following(file) as applied:
        rows = "".join(f"  - {{name: {name}, hostname: {name}.example}}\n" for name in names)
        save(file, f"binds:\n- port: 1\n  listeners:\n{rows}")
        await applied.wait_for(2)
        await until(lambda: caplog.text.count("configuration applied") == 2, "the line")
    fields = [record.__dict__["fields"] for record in caplog.records if record.message == "configuration applied"]
    keys = ["bind/default/standalone/1", *(f"listener/gateway/default/standalone/{name}" for name in names)]
    assert fields == [{"file": file, "resources": 1}, {"file": file, "added": ",".join(keys[:10]) + more}]


async def test_what_is_refused_is_named_as_the_file_writes_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("binds: []")
    why = "realm: is bad"
    async with following(file) as applied:
        applied.refuse = {
            "bind/default/standalone/2": "port 2 is in use",
            "route/httproute/default/users/0": f"basic_authentication: {why}",
            "policy/default/listener:a/ext_auth": f"ext_auth: {why}",
            "route/httproute/default/more/0": "no such thing: really",
            "": "workers hang",
            "odd": why,
        }
        save(file, REFUSED)
        await applied.wait_for(2)
        async with asyncio.timeout(PATIENCE):
            while "workers hang" not in caplog.text or f"odd: {why}" not in caplog.text:
                await asyncio.sleep(0.01)
    assert [record.message.removeprefix(str(file)) for record in caplog.records if record.levelname == "ERROR"] == [
        ":2: binds[0]: port 2 is in use",
        f":9: binds[0].listeners[0].routes[0].policies.basicAuthentication: {why}",
        f":6: binds[0].listeners[0].policies.extAuthz: {why}",
        ":11: binds[0].listeners[0].routes[1]: no such thing: really",
        ": state: workers hang",
        f": odd: {why}",
    ]


REFUSED = """binds:
- port: 2
  listeners:
  - name: a
    policies:
      extAuthz: {host: '127.0.0.1:2', protocol: {http: {}}}
    routes:
    - name: users
      policies: {basicAuthentication: {users: ['a:{SHA}x']}}
      backends: [{host: '127.0.0.1:1'}]
    - name: more
      backends: [{host: '127.0.0.1:1'}]
"""


GUARDED = """
binds:
- port: {port}
  listeners:
  - name: a
    routes:
    - policies:
        apiKeyAuthentication: {{secretRef: {{ann: {{file: {path}}}}}}}
      backends: [{{host: '127.0.0.1:1'}}]
"""


async def test_looks_are_counted_and_a_file_that_cannot_be_read_is_told_once_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, metrics, applied = tmp_path / "c.yaml", Metrics.in_memory(), Applied()
    file.write_text(text(1))
    source = FileSource(file, file_source.read(file, (), LocalReader()), applied, metrics, (), LocalReader())

    def counted() -> list[int]:
        return [int(metrics.slots[metrics.counter("config_loads_total", name)]) for name in ("applied", "refused")]

    async def looked(*contents: str | bytes | None) -> None:
        """None: the file is not there."""
        for content in contents:
            if content is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(content if isinstance(content, bytes) else content.encode())
            await source._look()

    await looked(text(2), text(2))
    assert (applied.states, counted()) == ([bind(2)], [1, 0])
    await looked(None, None, b"\xff", None)
    assert caplog.text.count("cannot be read, the last good configuration stays") == 1
    await looked(text(2), text(3))
    assert (applied.states, counted()) == ([bind(2), bind(2), bind(3)], [3, 0])
    await looked(b"\xff", None)
    assert caplog.text.count("cannot be read, the last good configuration stays") == 2
    await looked("binds: no", "binds: no", "binds: neither")
    assert (applied.states[3:], counted()) == ([], [3, 2])


PRICED = """
config: {{prices: {{file: {path}}}}}
binds:
- port: 8080
  listeners: [{{name: http, routes: [{{name: a, backends: [{{host: '127.0.0.1:1'}}]}}]}}]
"""


@pytest.mark.parametrize("where", ["prices.yaml", "elsewhere/prices.json"])
async def test_a_file_of_prices_is_followed(tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    file, prices = tmp_path / "c.yaml", tmp_path / where
    prices.parent.mkdir(exist_ok=True)
    prices.write_text('{"m": {"input": 1, "output": 2}}')
    file.write_text(PRICED.format(path=where))
    async with following(file) as applied:
        save(prices, '{"m": {"input": 1.5, "output": 2}}')
        await applied.wait_for(2)
        save(prices, '{"m": {"input": -1}}')
        async with asyncio.timeout(PATIENCE):
            while "last good configuration stays" not in caplog.text:
                await asyncio.sleep(0.02)
        save(prices, '{"m": {"input": 7}}')
        await applied.wait_for(3)
    assert len(applied.states) == 3
