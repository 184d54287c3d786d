"""Two controllers of one cluster, a proxy at each: the one that leads knows both, whoever it is."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.controllers import SHOP, Controller, bundle, get, is_programmed, proxy, token_of
from tests.cluster.kube import ApiServer
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.needs("go")

OPTIONS = ("--xds-service-accounts", "--no-provisioning")


def message(server: ApiServer) -> str:
    rows = (get(server, f"{SHOP}/gateways/web").get("status") or {}).get("conditions") or ()
    return next((str(row["message"]) for row in rows if row["type"] == "Programmed"), "")


def version(server: ApiServer) -> str:
    return str(get(server, f"{SHOP}/gateways/web")["metadata"]["resourceVersion"])


def listed(controller: Controller) -> dict[str, str]:
    """The proxies in its `status`, and which controller each is connected to."""
    body = json.loads(controller.cli("status", "-o", "json").stdout)
    return {row["instance"]: row["controller"] for row in body["proxies"]}


def test_programmed_counts_the_proxies_of_both_on_both_sides_of_a_change(
    server: ApiServer, token: str, shop: str, tmp_path: Path
) -> None:
    one, two = (Controller(server, token, tmp_path, name, *OPTIONS) for name in ("one", "two"))
    with ExitStack() as stack:
        stack.callback(one.process.stop)
        stack.callback(two.process.stop)
        one.await_ready()
        two.await_ready()
        wait_until(lambda: one.leads or two.leads)
        leads, follows = (one, two) if one.leads else (two, one)
        authority, credential = bundle(server), token_of(server, shop)
        stack.enter_context(proxy(tmp_path, leads, authority, credential, "at-leader", "--instance", "a"))
        wait_until(lambda: message(server).startswith("1 proxy serving"), leads.process.log)
        stack.enter_context(proxy(tmp_path, follows, authority, credential, "at-follower", "--instance", "b"))
        wait_until(lambda: message(server).startswith("2 proxies serving"), leads.process.log)
        assert is_programmed(server)
        assert listed(leads) == {"a": "", "b": socket.gethostname()}, "the leader lists all"
        assert listed(follows) == {"b": ""} and "leads and lists all of them" in follows.cli("status").stdout
        assert "are listed" not in leads.cli("status").stdout
        assert 'gatewright_controller_peers{state="reporting"} 1.0' in leads.metrics
        assert 'gatewright_controller_peer_messages_total{direction="received"} 0.0' not in leads.metrics
        assert 'gatewright_controller_peer_messages_total{direction="sent"} 0.0' not in follows.metrics
        for each in (leads, follows):
            assert 'gatewright_controller_token_reviews_total{outcome="accepted"} 1.0' in each.metrics
            assert "gatewright_controller_token_reviews_kept 1.0" in each.metrics
        leads.end()  # and its proxy has no controller any more
        wait_until(lambda: follows.leads, follows.process.log)
        wait_until(lambda: message(server).startswith("1 proxy serving"), follows.process.log)
        assert is_programmed(server)


def test_a_restart_writes_nothing_into_a_gateway_whose_proxies_come_back(
    server: ApiServer, token: str, shop: str, tmp_path: Path
) -> None:
    first = Controller(server, token, tmp_path, "first", *OPTIONS).await_ready()
    with ExitStack() as stack:
        stack.callback(first.process.stop)
        authority, credential = bundle(server), token_of(server, shop)
        started = stack.enter_context(proxy(tmp_path, first, authority, credential))
        wait_until(lambda: is_programmed(server), first.process.log)
        wait_until(lambda: first.writes_pending == 0)
        before = version(server)
        address = f"127.0.0.1:{first.process.port('XDS')}"
        first.end()
        second = Controller(server, token, tmp_path, "second", *OPTIONS, xds=address)
        stack.callback(second.process.stop)
        second.await_ready()
        wait_until(lambda: second.leads, second.process.log)
        wait_until(lambda: second.process.log().count("connected from") == 1, started.log)
        wait_until(lambda: second.is_settled, second.process.log)
        assert version(server) == before, message(server)
