"""Metrics, readiness and liveness of the controller: on the admin address, and on addresses of their own."""

from __future__ import annotations

import asyncio
import http.client
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controlplane.admin import metrics, pages, server
from controlplane.admin.facts import Facts
from controlplane.numbers import BUCKETS, Histogram
from tests.harness.patience import PATIENCE
from tests.unit.admin.test_admin_server import Known


class Waiting(Known):
    """Not ready, for these reasons."""

    def __init__(self, *reasons: str) -> None:
        self._reasons = reasons

    def pending(self) -> Sequence[str]:
        return self._reasons

    def is_broken(self) -> bool:
        return False


def admin(facts: Facts, host: str) -> pages.Listening:
    return server.Server(facts, host, 0)


def stats(facts: Facts, host: str) -> pages.Listening:
    return pages.Listening(pages.stats(facts), host, 0)


def readiness(facts: Facts, host: str) -> pages.Listening:
    return pages.Listening(pages.readiness(facts), host, 0)


@asynccontextmanager
async def served(page: pages.Listening) -> AsyncIterator[int]:
    port = await page.start()
    try:
        yield port
    finally:
        await page.stop()


async def get(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str, str]:
    def call() -> tuple[int, str, str]:
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers={"host": "localhost"})
            answer = connection.getresponse()
            return answer.status, str(answer.headers["content-type"]), answer.read().decode()
        finally:
            connection.close()

    return await asyncio.to_thread(call)


@pytest.mark.parametrize("made", [admin, stats])
async def test_metrics_are_what_prometheus_reads(made: Callable[[Facts, str], pages.Listening]) -> None:
    async with served(made(Known(), "127.0.0.1")) as port:
        for path in ("/metrics", "/stats/prometheus"):
            status, form, text = await get(port, path)
            families = {family.name for family in text_string_to_metric_families(text)}
            assert (status, form) == (200, metrics.CONTENT_TYPE)
            assert {"gatewright_controller_ready", "process_cpu_seconds", "process_open_fds"} <= families


@pytest.mark.parametrize("made", [admin, readiness])
async def test_probes(made: Callable[[Facts, str], pages.Listening]) -> None:
    async with served(made(Known(), "127.0.0.1")) as port:
        assert (await get(port, "/healthz/ready"))[::2] == (200, "ready\n")
    async with served(made(Waiting("one", "two"), "127.0.0.1")) as port:
        assert (await get(port, "/healthz/ready"))[::2] == (500, "not ready, pending: one, two\n")
        assert (await get(port, "/healthz/live"))[::2] == (200, "live\n")


async def test_who_cannot_go_on_is_not_alive() -> None:
    class Broken(Known):
        def is_broken(self) -> bool:
            return True

    async with served(readiness(Broken(), "127.0.0.1")) as port:
        assert (await get(port, "/healthz/live"))[::2] == (500, "restart it\n")


@pytest.mark.parametrize(("made", "absent"), [(stats, "/healthz/ready"), (readiness, "/metrics"), (stats, "/api")])
async def test_a_page_of_its_own_has_nothing_else(made: Any, absent: str) -> None:
    async with served(made(Known(), "127.0.0.1")) as port:
        assert (await get(port, absent))[0] == 404


async def test_every_address_is_that_of_ipv4_too() -> None:
    async with served(readiness(Known(), "::")) as port:
        assert (await get(port, "/healthz/live"))[0] == 200


async def test_without_both_families_on_one_socket_every_address_is_that_of_ipv4(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    async with served(readiness(Known(), "::")) as port:
        assert (await get(port, "/healthz/live"))[0] == 200
        with pytest.raises(OSError):
            await get(port, "/healthz/live", "::1")


async def test_one_address_is_that_alone() -> None:
    async with served(readiness(Known(), "[::1]")) as port:
        assert (await get(port, "/healthz/live", "::1"))[0] == 200
        with pytest.raises(OSError):
            await get(port, "/healthz/live")


def test_the_admin_address_names_the_pages_that_may_be_elsewhere() -> None:
    with pytest.raises(ValueError, match=r"--stats and --readiness"):
        server.Server(Known(), "0.0.0.0", 0)


def test_every_row_of_the_table_is_rendered() -> None:
    took = Histogram()
    for seconds in (0.0, BUCKETS[0], 0.3, 1000.0):
        took.observe(seconds)
    given = {
        row.name: {tuple("x" for _ in row.labels): took if row.kind == "histogram" else 3.0} for row in metrics.METRICS
    }
    families = {family.name: family for family in text_string_to_metric_families(metrics.render(given).decode())}
    for row in metrics.METRICS:
        family = families[metrics.PREFIX + row.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (row.kind, row.help)
    buckets = {
        sample.labels["le"]: sample.value
        for sample in families[metrics.PREFIX + "change_duration_seconds"].samples
        if sample.name.endswith("_bucket")
    }
    assert (buckets["0.001"], buckets["0.25"], buckets["0.5"], buckets["+Inf"]) == (2, 2, 3, 4)
    (total,) = [
        sample.value
        for sample in families[metrics.PREFIX + "change_duration_seconds"].samples
        if sample.name.endswith("_sum")
    ]
    assert total == pytest.approx(1000.301)


def test_series_are_in_the_order_of_their_labels() -> None:
    (row,) = (row for row in metrics.METRICS if row.name == "token_reviews_total")
    text = metrics.render({row.name: {("b",): 1.0, ("a",): 2.0, ("c",): 0.0}}).decode()
    assert [line for line in text.splitlines() if line.startswith(metrics.PREFIX + row.name)] == [
        f'{metrics.PREFIX}{row.name}{{outcome="{label}"}} {value}'
        for label, value in (("a", 2.0), ("b", 1.0), ("c", 0.0))
    ]
    assert "\npython_gc_collections_total{" in text and "\nprocess_cpu_seconds_total " in text


def test_a_value_without_a_row_is_a_bug() -> None:
    with pytest.raises(KeyError):
        metrics.render({"unknown": {(): 1.0}})
