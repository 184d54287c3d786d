"""Calls that this proxy makes itself: of policies, of backends that end requests themselves, copies for mirrors."""

from dataplane.upstream.calls.call import Call
from dataplane.upstream.calls.sending import Sending
from dataplane.upstream.calls.service import HttpCalls

__all__ = ["Call", "HttpCalls", "Sending"]
