"""The corpus: malformed, ambiguous and unusual requests, written from RFC 9110, 9112 and 3986, one file per subject.

Names are unique; a test and a bug report use them. Where the RFCs leave a choice, the answer is the strict one and the
case's file says why.
"""

from tests.raw.case import Case
from tests.raw.corpus import (
    chunked_bodies,
    connections,
    fields,
    forwarding,
    hosts,
    lengths,
    limits,
    request_lines,
    targets,
    transfer_codings,
)

CASES: tuple[Case, ...] = (
    *request_lines.CASES,
    *targets.CASES,
    *hosts.CASES,
    *fields.CASES,
    *limits.CASES,
    *lengths.CASES,
    *transfer_codings.CASES,
    *chunked_bodies.CASES,
    *forwarding.CASES,
    *connections.CASES,
)
