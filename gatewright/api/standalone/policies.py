"""`policies` of a route in the standalone file: the settings of a GatewayPolicy and of an HTTPRoute's rule in one list.

Part of standalone_file. Listeners and backends take the CRD's own sets (Traffic, BackendFull) in the file's form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from gatewright.api.backend.backend import BackendFull
from gatewright.api.routes.http_filters import Fraction, HTTPRequestRedirectFilter, HTTPURLRewriteFilter
from gatewright.api.routes.http_route import HTTPRouteTimeouts
from gatewright.api.routes.session_persistence import SessionPersistence
from gatewright.api.schema.fields import Integer
from gatewright.api.schema.model import Broken
from gatewright.api.standalone.form import file_form
from gatewright.api.standalone.references import Reference
from gatewright.api.traffic.traffic import RequestPolicies
from gatewright.attach.policies import BACKEND, RULE, TRAFFIC


@file_form
class FileMirror(Reference):
    """`requestMirror`: Gateway API HTTPRequestMirrorFilter with the file's form of a reference."""

    percent: Annotated[Integer, Field(ge=0, le=100)] | None = None
    """Share of the requests that are copied; all of them when neither this nor fraction is set."""
    fraction: Fraction | None = None
    """The share as a fraction."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from super().broken_rules()
        if self.percent is not None and self.fraction is not None:
            yield Broken(("fraction",), "only one of percent and fraction may be set")


@file_form
class RoutePolicies(RequestPolicies, BackendFull):
    """What happens with the requests of a route: filters of an HTTPRoute's rule, then `traffic` and `backend` of a
    GatewayPolicy."""

    parts = (TRAFFIC, RULE, BACKEND)
    """A name that several have is that of the first."""

    url_rewrite: HTTPURLRewriteFilter | None = None
    """Another path or host for the backend."""
    request_redirect: HTTPRequestRedirectFilter | None = None
    """Answer with a redirect; the route has no backends then."""
    request_mirror: FileMirror | None = None
    """Send copies of requests to another backend."""
    session_persistence: SessionPersistence | None = None
    """Requests of a session stay at one endpoint."""
    timeouts: HTTPRouteTimeouts | None = None  # type: ignore[assignment]  # has more than that of policies
    """How long a request may take."""
