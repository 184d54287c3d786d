"""Proxies over TLS with tokens of their service accounts, known by the API server: each has its own Gateway alone."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from controlplane.kube.authority_secret import NAME as AUTHORITY
from controlplane.xds.trust import authority as authorities
from tests.cluster.controllers import (
    SECRET,
    SYSTEM,
    Controller,
    bundle,
    is_programmed,
    proxy,
    token_of,
)
from tests.cluster.kube import ApiServer
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.needs("go")


@pytest.fixture
def controller(server: ApiServer, token: str, tmp_path: Path) -> Iterator[Controller]:
    made = Controller(server, token, tmp_path, "controller", "--xds-service-accounts", "--no-provisioning")
    try:
        yield made.await_ready()
    finally:
        made.process.stop()


def test_the_account_of_its_own_gateway_is_let_in(
    server: ApiServer, controller: Controller, shop: str, tmp_path: Path
) -> None:
    with proxy(tmp_path, controller, bundle(server), token_of(server, shop)) as started:
        started.await_ready()
        wait_until(lambda: is_programmed(server), controller.process.log)
    wait_until(lambda: not is_programmed(server), controller.process.log)


@pytest.mark.parametrize(
    ("account", "audience", "reason"),
    [
        ("other", "gatewright", "the token is not of system:serviceaccount:shop:web"),
        ("web", "https://kubernetes.default.svc", "the API server does not know the token"),
    ],
)
def test_another_account_and_another_audience_are_refused(
    server: ApiServer, controller: Controller, shop: str, tmp_path: Path, account: str, audience: str, reason: str
) -> None:
    with proxy(tmp_path, controller, bundle(server), token_of(server, account, audience)) as started:
        wait_until(lambda: reason in started.log(), started.log)
        wait_until(lambda: reason in controller.process.log(), controller.process.log)


def test_a_forged_token_and_a_foreign_authority_are_refused(
    server: ApiServer, controller: Controller, shop: str, tmp_path: Path
) -> None:
    head, claims, _ = token_of(server, shop).split(".")
    signature = token_of(server, "other").split(".")[2]
    with proxy(tmp_path, controller, bundle(server), f"{head}.{claims}.{signature}", "forged") as started:
        wait_until(lambda: "the API server does not know the token" in started.log(), started.log)
    assert signature not in controller.process.log()
    foreign = authorities.written(authorities.created(datetime.now(UTC)))["ca.crt"]
    with proxy(tmp_path, controller, foreign, token_of(server, shop), "foreign") as started:
        wait_until(lambda: "UNAVAILABLE" in started.log(), started.log)
    assert not is_programmed(server)


def test_a_controller_without_a_usable_authority_says_what_to_do(server: ApiServer, token: str, tmp_path: Path) -> None:
    before = server.request("GET", SECRET)
    if before.status == 200:
        server.request("DELETE", SECRET)
    broken = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": AUTHORITY}, "data": {"ca.crt": "bm9uZQ=="}}
    assert server.request("POST", SECRET.rpartition("/")[0], broken).status == 201
    try:
        controller = Controller(server, token, tmp_path, "broken", "--xds-service-accounts", "--no-provisioning")
        wait_until(lambda: controller.process.returncode is not None, controller.process.log)
        told = controller.process.log()
        controller.process.stop()
        assert f"Secret {SYSTEM}/{AUTHORITY}" in told and "remove it" in told
        assert "Traceback" not in told
    finally:
        server.request("DELETE", SECRET)


def test_two_controllers_show_certificates_of_one_authority_and_a_restart_keeps_it(
    server: ApiServer, controller: Controller, token: str, shop: str, tmp_path: Path
) -> None:
    other = Controller(server, token, tmp_path, "other", "--xds-service-accounts", "--no-provisioning")
    try:
        other.await_ready()
        authority = bundle(server)
        with proxy(tmp_path, controller, authority, token_of(server, shop), "one") as one:
            one.await_ready()
            with proxy(tmp_path, other, authority, token_of(server, shop), "two") as two:
                two.await_ready()
        other.end(signal.SIGTERM)
        again = Controller(server, token, tmp_path, "again", "--xds-service-accounts", "--no-provisioning")
        try:
            again.await_ready()
            assert bundle(server) == authority
        finally:
            again.process.stop()
    finally:
        other.process.stop()
