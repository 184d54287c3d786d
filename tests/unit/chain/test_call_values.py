"""Values that steps of policies exchange: what they are by themselves, and that no repr shows a credential."""

from __future__ import annotations

import pytest

from dataplane.chain import replies
from dataplane.chain.calls import CallAnswer, CallRequest
from dataplane.chain.filter import WHOLE, Filter, Origin
from dataplane.chain.reply import Reply
from dataplane.filters.steps.ext_auth.verdict import Verdict
from dataplane.http.heads import Head


def test_no_repr_shows_a_credential() -> None:
    request = CallRequest(b"POST", b"/?key=secret", b"issuer.example", b"authorization: secret\r\n", b"secret")
    answer = CallAnswer(200, Head(b"\r\n"), b"secret")
    verdict = Verdict(metadata={"token": "secret"}, size=7)
    for value in (request, answer, verdict):
        assert "secret" not in repr(value) and repr(value) != object.__repr__(value)


def test_a_call_has_no_more_than_it_is_given() -> None:
    request = CallRequest(b"GET", b"/")
    assert (request.authority, request.headers, request.body) == (b"", b"", b"")


def test_a_filter_that_says_nothing_of_itself_does_nothing() -> None:
    plain = Filter("a")
    assert (plain.silent, plain.response_body) == (False, 0)
    assert [plain.request, plain.response, plain.end, plain.request_stream, plain.response_stream] == [None] * 5
    assert WHOLE < 0  # no number of bytes


def test_a_reply_is_a_text_that_keeps_the_connection() -> None:
    reply = Reply(200, "Reason")
    assert (reply.body, reply.headers, reply.content_type, reply.close, reply.detail) == (
        b"",
        b"",
        b"text/plain",
        False,
        "",
    )


def test_what_a_cause_adds_to_its_reply() -> None:
    plain = replies.made("RateLimited")
    assert plain is replies.REPLIES["RateLimited"] and (plain.status, plain.detail, plain.headers) == (429, "", b"")
    assert replies.made("RateLimited", "of ann").detail == "of ann"
    limited = replies.made("RateLimited", headers=b"retry-after: 1\r\n")
    assert limited.headers == b"retry-after: 1\r\n" and limited == replies.made(
        "RateLimited", "", b"retry-after: 1\r\n"
    )


@pytest.mark.parametrize(
    ("origin", "words", "key"),
    [
        (Origin(), "", "|||"),
        (
            Origin("policy a/b", "rate_limit", "route/x", "d1"),
            "policy a/b rateLimit",
            "policy a/b|rate_limit|route/x|d1",
        ),
        (
            Origin("policy a/b", "cors", "route/x", "d1", "conditional[0]"),
            "policy a/b cors.conditional[0]",
            "policy a/b|cors|route/x|d1",
        ),
    ],
)
def test_whose_policy_it_is(origin: Origin, words: str, key: str) -> None:
    assert (str(origin), origin.key) == (words, key)


STATUSES = {
    "EndpointPickerFailed": 503,
    "EndpointNotInPool": 503,
    "BadRequest": 400,
    "AmbiguousPath": 400,
    "AgentCallUnreadable": 400,
    "UnusualHeaderName": 400,
    "TooManyParameters": 400,
    "JsonTooLarge": 400,
    "ExpressionsTooCostly": 400,
    "PatternTooCostly": 400,
    "BodyTooLarge": 413,
    "TooManyBodies": 503,
    "TooManyResponses": 503,
    "BackendBusy": 503,
    "Overspent": 429,
    "TargetTooLong": 414,
    "ExpectationFailed": 417,
    "HeadersTooLarge": 431,
    "MethodNotImplemented": 501,
    "CodingNotImplemented": 501,
    "VersionNotSupported": 505,
    "RequestTimeout": 408,
    "ConnectNotAllowed": 405,
    "TraceNotAllowed": 405,
    "UpgradeNotAllowed": 501,
    "Overloaded": 503,
    "BindClosed": 404,
    "ListenerNotFound": 404,
    "Misdirected": 421,
    "RouteNotFound": 404,
    "CsrfFailed": 403,
    "JwtMissing": 401,
    "JwtInvalid": 401,
    "JwtKeysUnavailable": 401,
    "BasicMissing": 401,
    "BasicInvalid": 401,
    "AuthenticationBusy": 503,
    "ApiKeyMissing": 401,
    "ApiKeyInvalid": 401,
    "ExtAuthDenied": 403,
    "ExtAuthFailed": 403,
    "AuthorizationDenied": 403,
    "RateLimited": 429,
    "RateLimitFailed": 500,
    "ExtProcAnswered": 403,
    "ExtProcFailed": 500,
    "GuardUnavailable": 403,
    "AnswerRejected": 403,
    "PromptRejected": 403,
    "LlmProvidersFailed": 503,
    "RequestTransformationFailed": 500,
    "ResponseTransformationFailed": 502,
    "ResponseTooLarge": 502,
    "DirectResponseFailed": 500,
    "NoValidBackend": 500,
    "InvalidBackend": 500,
    "BackendAuthenticationFailed": 500,
    "BackendRefused": 500,
    "DestinationRefused": 403,
    "PolicyUnusable": 503,
    "NoEndpoints": 503,
    "DnsFailed": 503,
    "ConnectFailed": 503,
    "TunnelFailed": 503,
    "UpstreamFailed": 502,
    "RetriesExhausted": 503,
    "UpstreamInvalid": 502,
    "OAuthMetadataUnavailable": 502,
    "AgentCardInvalid": 502,
    "UpgradeFailed": 502,
    "UpstreamTimeout": 504,
    "RequestDeadline": 504,
    "InternalError": 500,
    "ConnectDenied": 403,
    "ConnectTargetNotFound": 404,
    "TunnelTooDeep": 403,
    "McpNotAcceptable": 406,
    "McpContentType": 415,
    "McpBadMessage": 400,
    "McpBadVersion": 400,
    "McpSessionMissing": 400,
    "McpSessionUnknown": 404,
    "McpMethodNotAllowed": 405,
    "McpNoStream": 405,
    "McpOriginNotAllowed": 403,
    "McpDenied": 200,
    "McpAnswerRefused": 200,
    "McpItemUnknown": 400,
    "LoopDetected": 508,
    "McpMethodUnknown": 404,
    "McpRejected": 200,
    "McpNoTargets": 503,
    "McpBusy": 503,
    "McpTargetFailed": 502,
    "LlmBadRequest": 400,
    "LlmFormatUnsupported": 400,
    "LlmModelDenied": 403,
    "LlmMethodNotAllowed": 405,
    "LlmNeedsWebSocket": 426,
    "LlmContentCoding": 415,
    "LlmStreamBroken": 502,
}
CLOSES = [
    "BadRequest",
    "UnusualHeaderName",
    "BodyTooLarge",
    "TooManyBodies",
    "Overspent",
    "TargetTooLong",
    "ExpectationFailed",
    "HeadersTooLarge",
    "LoopDetected",
    "MethodNotImplemented",
    "CodingNotImplemented",
    "VersionNotSupported",
    "RequestTimeout",
    "ConnectNotAllowed",
    "ConnectDenied",
    "ConnectTargetNotFound",
    "TunnelTooDeep",
    "BindClosed",
    "InternalError",
]
"""After these nobody knows where on the connection the next request begins."""


def test_the_status_of_each_cause_and_whether_the_connection_goes_on() -> None:
    assert {reason: reply.status for reason, reply in replies.REPLIES.items()} == STATUSES
    assert [reason for reason, reply in replies.REPLIES.items() if reply.close] == CLOSES


CLOSING = """
BadRequest UnusualHeaderName BodyTooLarge TooManyBodies Overspent TargetTooLong ExpectationFailed HeadersTooLarge
MethodNotImplemented CodingNotImplemented VersionNotSupported RequestTimeout ConnectNotAllowed ConnectDenied
ConnectTargetNotFound TunnelTooDeep BindClosed LoopDetected InternalError
"""
"""Where what follows on the connection cannot be told apart from the message, or nobody is to read it."""


@pytest.mark.parametrize("reason", replies.REPLIES)
def test_after_which_answers_the_connection_ends(reason: str) -> None:
    assert replies.made(reason).close == (reason in CLOSING.split())
    assert replies.made(reason, "why", b"x-a: 1\r\n").close == (reason in CLOSING.split())
