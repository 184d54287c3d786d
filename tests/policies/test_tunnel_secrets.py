"""No credential for a forward proxy (`backend.tunnel`) shows: in a log, an access log, an answer, a metric, a repr of
what it passes through, a dump; whatever the proxy answers."""

from __future__ import annotations

import gc
import logging
from typing import Final

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from controlplane.snapshot import RESOURCE_TYPE as TYPE
from controlplane.snapshot.redact import redacted
from gatewright.api.standalone import standalone
from tests.fakes.forward_proxy import OK, forward_proxy, origin, through
from tests.fakes.socket_proxy import serving

CANARY: Final = "c4n4ry"
AUTH: Final = {
    "basic": f"auth: {{secretRef: {{value: {CANARY}}}, location: {{header: {{name: Authorization, prefix: Basic}}}}}}",
    "inline": f"auth: {{key: {CANARY}, location: {{header: {{name: Proxy-Authorization, prefix: Basic}}}}}}",
    "of a form that cannot be sent": f'auth: {{key: "{CANARY}\\n{CANARY}"}}',
}
ANSWERS: Final = {
    "a tunnel": OK,
    "credentials are wrong": f"HTTP/1.1 407 {CANARY}\r\nproxy-authenticate: Basic realm={CANARY}\r\n\r\n".encode(),
    "it is forbidden": f"HTTP/1.1 403 No\r\nx-echo: {CANARY}\r\ncontent-length: 6\r\n\r\n{CANARY}".encode(),
    "no HTTP": f"{CANARY} {CANARY}\r\n\r\n".encode(),
    "a bad head": f"HTTP/1.1 200 OK\r\n{CANARY}\r\n\r\n".encode(),
}
HOMES: Final = ("dataplane.upstream", "dataplane.table.plans", "dataplane.chain.calls", "dataplane.filters.settings")


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("auth", AUTH)
async def test_a_proxy_shows_nothing(auth: str, answer: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with origin() as (port, heads), forward_proxy() as between:
        between.goes_to, between.answer = port, ANSWERS[answer]
        async with serving(through(between.port, policies=AUTH[auth])) as proxy:
            shown = [(await proxy.get()).decode(), *proxy.log_lines(), caplog.text]
            shown += [str(each) for each in proxy.context.recorder.metrics.series()]
            shown += [repr(each) for each in gc.get_objects() if type(each).__module__.startswith(HOMES)]
    sent = b"".join(between.asked)
    assert (CANARY.encode() in sent) == (auth != "of a form that cannot be sent"), (
        "it is for the proxy, where it can be"
    )
    assert not [head for head in heads if CANARY.encode() in head], "and never for what is behind it"
    assert [text for text in shown if CANARY in text] == []


@pytest.mark.parametrize("auth", AUTH)
def test_dumps_show_nothing(auth: str) -> None:
    for each in standalone.load(through(9, policies=AUTH[auth]), "config.yaml").resources:
        shown = redacted(AnyMessage(type_url=TYPE, value=each.SerializeToString()))
        assert CANARY.encode() not in shown.value
        assert each.HasField("secret") or CANARY.encode() not in each.SerializeToString()
