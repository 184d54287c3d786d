"""Credentials toward backends that proxies refuse: errors. Rows of `advice`; nothing of a credential is repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gatewright import aws_hosts, invisible
from gatewright.api.backend.auth import BackendAuth
from gatewright.api.objects.gateway_backend import GatewayBackendSpec
from gatewright.api.text.problem import Advice

NOT_SENT: Final = "the proxy sends no request without it: they are answered with 500"

_ends_a_line: Final = re.compile(r"[\r\n\0]").search


def unfit_key(auth: BackendAuth) -> Iterator[Advice]:
    """A key that no request can carry."""
    if auth.key is None:
        return
    text = auth.key.strip()
    hidden = invisible.hidden(text.encode())
    if not text:
        yield Advice(("key",), f"is empty: {NOT_SENT}", "error")
    elif hidden:
        yield Advice(("key",), f"has an invisible character, {hidden}: {NOT_SENT}", "error")
    elif _ends_a_line(text):
        yield Advice(("key",), f"has several lines: {NOT_SENT}", "error")


def unfit_location(auth: BackendAuth) -> Iterator[Advice]:
    """A header that no credential is written to. Those of the connection, and cookies: as of all locations."""
    place = auth.location
    if place is not None and place.header is not None and place.header.name.lower() == "cookie":
        yield Advice(("location", "header", "name"), f"is not for credentials, cookie is: {NOT_SENT}", "error")


def unknown_service(spec: GatewayBackendSpec) -> Iterator[Advice]:
    """Requests of which it is not said which service of AWS they are signed for."""
    auth = spec.policies.auth if spec.policies is not None else None
    host = spec.static.host if spec.static is not None else None
    if auth is None or auth.aws is None or auth.aws.service_name is not None or not host:
        return
    if not aws_hosts.place_of(host.lower())[0]:
        message = f"is required, as {host} is no host of AWS, which would name it: {NOT_SENT}"
        yield Advice(("policies", "auth", "aws", "serviceName"), message, "error")
