"""Keys that are too large to sign with while others wait."""

from __future__ import annotations

import time

import pytest

from dataplane.tls.contexts import MAX_RSA, load
from dataplane.tls.settings import BadSettings, Identity
from tests.fakes.certificates import HUGE, Authority


def test_a_key_that_takes_long_is_refused_at_once() -> None:
    issued = Authority().issue("shop.example", kind=HUGE)
    begin = time.thread_time()
    with pytest.raises(BadSettings, match=rf"RSA key has 14112 bits, more than {MAX_RSA}"):
        load(Identity(issued.chain, issued.key))
    assert time.thread_time() - begin < 0.1
