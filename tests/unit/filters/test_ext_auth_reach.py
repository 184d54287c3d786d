"""Whether an authorization server can be reached: one line when it is lost, one when it is back, for all workers."""

from __future__ import annotations

import pytest

from dataplane.chain.calls import CallFailed
from dataplane.chain.reach import Reach, hint
from dataplane.link.buckets import Buckets

REFUSED = CallFailed("connect", "connection refused")


def tell(reach: Reach, *answers: bool) -> None:
    """As the filter does: an answer counts where the server was lost."""
    for is_answered in answers:
        if not is_answered:
            reach.failed("policy a/b", REFUSED)
        elif reach.lost:
            reach.answered("policy a/b")


LOST = "policy a/b: the authorization server gives no answer: connection refused"
BACK = "policy a/b: the authorization server answers again"


SERVER = ("ext_auth", "the authorization server", "backend/auth")


def test_each_change_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    reach = Reach(*SERVER, lambda: 1.0, None)
    assert not reach.lost
    tell(reach, True, False, False, True)
    assert not reach.lost
    tell(reach, True, False)
    assert reach.lost and caplog.messages == [LOST, BACK, LOST]


def test_of_workers_that_share_a_sign_one_tells(caplog: pytest.LogCaptureFixture) -> None:
    buckets, now = Buckets.local(), 1.0
    one, other = (Reach(*SERVER, lambda: now, buckets.sign("lost")) for _ in range(2))
    for answers in ((True,), (False, False), (True, True), (False,)):
        for reach in (one, other):
            tell(reach, *answers)
            assert reach.lost is not answers[-1]
    assert caplog.messages == [LOST, BACK, LOST]
    successor = Reach(*SERVER, lambda: now, buckets.sign("lost"))
    tell(successor, True)
    assert caplog.messages[3:] == [BACK] and not successor.lost


@pytest.mark.parametrize(
    ("cause", "text", "platform", "words"),
    [
        ("connect", "unix:/run/x.sock: no such file", "linux", "listens on /run/tailscale/"),
        ("connect", "unix:/run/x.sock: no such file", "darwin", "listens on /var/run/tailscale/"),
        ("connect", "unix:/run/x.sock: no such file", "other", "listens on /run/tailscale/"),
        ("connect", "10.0.0.1:1: refused", "linux", ""),
        ("timeout", "unix:/run/x.sock: no answer", "linux", ""),
    ],
)
def test_what_to_look_at(cause: str, text: str, platform: str, words: str) -> None:
    found = hint(CallFailed(cause, text), platform)
    assert words in found and bool(found) is bool(words)
