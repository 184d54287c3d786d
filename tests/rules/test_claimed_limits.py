"""The Limits table of the specification: what the models take at each bound and refuse beyond it.

The objects are those of the verdict table that lie exactly at a bound and one beyond; a bound for which the table has
none fails. Limits of the running proxy are claimed where the proxy is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from gatewright.api.objects.kinds import KINDS
from tests.rules.verdicts.defaults import DEFAULTS
from tests.rules.verdicts.judge import verdict
from tests.rules.verdicts.rows import ROWS
from tests.rules.verdicts.table import OBJECTS, Row, parts


@dataclass(frozen=True)
class Bound:
    """Sizes of a list, a map, a text or a number that are taken: from `low` to `high`. None: nobody says."""

    path: str
    low: int | None
    high: int | None
    kind: str = "GatewayPolicy"


@dataclass(frozen=True)
class Default:
    """What a field is that nobody sets."""

    path: str
    value: Any
    kind: str = "GatewayPolicy"


def size(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    return value if isinstance(value, int) else len(value) if isinstance(value, str | list | dict) else None


def backend(path: str, low: int, high: int) -> Bound:
    return Bound(path, low, high, "GatewayBackend")


def shutdown(path: str) -> Bound:
    return Bound(path, 0, 31_536_000, "GatewayParameters")


TRAFFIC, FRONTEND, BACKEND = "spec.traffic", "spec.frontend", "spec.backend"
JWT = f"{TRAFFIC}.jwtAuthentication.providers"
GLOBAL = f"{TRAFFIC}.rateLimit.global.descriptors"
AI, HTTP = f"{BACKEND}.ai", f"{TRAFFIC}.extAuth.http"
TRANSFORMS = [f"{TRAFFIC}.transformation.{side}" for side in ("request", "response")]
CONDITIONAL = ("transformation", "extProc", "extAuth", "rateLimit", "directResponse")


LIMITS = [
    pytest.param(
        [
            Bound(f"{JWT}[0].issuer", 1, 256),
            Bound(f"{GLOBAL}[0].entries[0].name", 1, 64),
            Bound(f"{FRONTEND}.tracing.path", 1, 1024),
        ],
        marks=pytest.mark.claims("limits: ShortString / TinyString / LongString"),
    ),
    pytest.param(
        [Bound(f"{TRANSFORMS[0]}.body", None, 16_384), Bound(f"{GLOBAL}[0].cost", 1, 16_384)],
        marks=pytest.mark.claims("limits: CELExpression"),
    ),
    pytest.param(
        [Bound("spec.targetRefs", 1, 16), Bound("spec.targetSelectors", 1, 16)],
        marks=pytest.mark.claims("limits: GatewayPolicy targetRefs / targetSelectors"),
    ),
    pytest.param(
        [backend("spec.ai.groups", 1, 8), backend("spec.ai.groups[0].providers", 1, 16)],
        marks=pytest.mark.claims("limits: AI backend groups; providers per group"),
    ),
    pytest.param([backend("spec.mcp.targets", 1, 32)], marks=pytest.mark.claims("limits: MCP targets per backend")),
    pytest.param(
        [Bound(f"{AI}.promptGuard.request", 1, 8), Bound(f"{AI}.promptGuard.response", 1, 8)],
        marks=pytest.mark.claims("limits: Prompt guards per request list / response list"),
    ),
    pytest.param(
        [
            *(Bound(f"{AI}.{name}", 1, 64) for name in ("defaults", "overrides", "transformations")),
            Bound(f"{AI}.modelAliases", 0, 64),
        ],
        marks=pytest.mark.claims("limits: FieldDefault lists (defaults, overrides), transformations, modelAliases"),
    ),
    pytest.param(
        [Bound(f"{TRAFFIC}.{name}.conditional", 1, 16) for name in CONDITIONAL],
        marks=pytest.mark.claims("limits: Conditional policy items"),
    ),
    pytest.param(
        [
            Bound(f"{TRAFFIC}.rateLimit.local", 1, 16),
            *(Bound(f"{TRAFFIC}.rateLimit.local[0].{name}", 1, None) for name in ("requests", "tokens")),
        ],
        marks=pytest.mark.claims("limits: Local rate limits per policy"),
    ),
    pytest.param(
        [Bound(GLOBAL, 1, 16), Bound(f"{GLOBAL}[0].entries", 1, 16)],
        marks=pytest.mark.claims("limits: Global rate limit descriptors; entries per descriptor"),
    ),
    pytest.param(
        [Bound(f"{name}.policy.matchExpressions", 1, 256) for name in (f"{TRAFFIC}.authorization",)],
        marks=pytest.mark.claims("limits: Authorization matchExpressions per rule"),
    ),
    pytest.param(
        [Bound(JWT, 1, 64), Bound(f"{JWT}[0].audiences", 1, 64)],
        marks=pytest.mark.claims("limits: JWT providers; audiences"),
    ),
    pytest.param(
        [Bound(f"{TRAFFIC}.basicAuthentication.users", 1, 256)],
        marks=pytest.mark.claims("limits: Basic auth inline users"),
    ),
    pytest.param(
        [
            Bound(f"{JWT}[0].jwks.inline", 2, 65_536),
            Bound(f"{JWT}[0].jwks.remote.jwksPath", 1, 2_000),
            Default(f"{JWT}[0].jwks.remote.cacheDuration", "5m"),
        ],
        marks=pytest.mark.claims("limits: JWKS inline size"),
    ),
    pytest.param(
        [
            Bound(f"{TRAFFIC}.directResponse.body", 1, 4_096),
            Bound(f"{TRAFFIC}.directResponse.headers", 1, 16),
            Bound(f"{TRAFFIC}.directResponse.status", 200, 599),
        ],
        marks=pytest.mark.claims("limits: DirectResponse body; header count; status"),
    ),
    pytest.param(
        [Bound(f"{side}.{name}", 1, 16) for side in TRANSFORMS for name in ("set", "add", "remove", "metadata")],
        marks=pytest.mark.claims("limits: Transform set / add / remove / metadata"),
    ),
    pytest.param(
        [
            *(Bound(f"{HTTP}.{name}", 0, 64) for name in ("allowedRequestHeaders", "addRequestHeaders")),
            *(Bound(f"{HTTP}.{name}", 0, 64) for name in ("allowedResponseHeaders", "responseMetadata")),
            *(Bound(f"{TRAFFIC}.extAuth.grpc.{name}", 0, 64) for name in ("contextExtensions", "requestMetadata")),
            Bound(f"{TRAFFIC}.extAuth.cache.key", 1, 16),
            Default(f"{TRAFFIC}.extAuth.cache.maxEntries", 10_000),
        ],
        marks=pytest.mark.claims("limits: ExtAuth header lists and maps"),
    ),
    pytest.param(
        [
            # What the defaults do: tests/policies/test_frontend_knobs.py.
            Bound(f"{FRONTEND}.http.http1MaxHeaders", 1, 4_096),
        ],
        marks=pytest.mark.claims("limits: Frontend HTTP defaults"),
    ),
    pytest.param(
        [
            # What the defaults do: tests/policies/test_frontend_tcp.py.
            Bound(f"{FRONTEND}.tcp.keepalive.retries", 1, 64),
        ],
        marks=pytest.mark.claims("limits: TCP keepalive"),
    ),
    pytest.param(
        [
            # What the default does: tests/policies/test_health.py.
            *(Bound(f"{BACKEND}.health.eviction.{name}", 0, 100) for name in ("restoreHealth", "healthThreshold")),
        ],
        marks=pytest.mark.claims("limits: Backend eviction"),
    ),
    pytest.param(
        [backend("spec.static.port", 1, 65_535), Bound(f"{FRONTEND}.accessLog.otlp.backendRef.port", 1, 65_535)],
        marks=pytest.mark.claims("limits: Ports"),
    ),
    pytest.param(
        [Bound(f"{FRONTEND}.metrics.attributes.add", 1, 16), Bound(f"{FRONTEND}.accessLog.attributes.remove", 1, 32)],
        marks=pytest.mark.claims("limits: Metric label additions"),
    ),
    pytest.param(
        [Default(f"{AI}.promptCaching.minTokens", 1_024)], marks=pytest.mark.claims("limits: Prompt caching minimum")
    ),
    pytest.param(
        [shutdown("spec.shutdown.min"), shutdown("spec.shutdown.max")],
        marks=pytest.mark.claims("limits: Shutdown `min` and `max`"),
    ),
    pytest.param(
        [
            *(Bound(f"{FRONTEND}.tls.{name}", 1, 16) for name in ("alpnProtocols", "keyExchangeGroups")),
            *(Bound(f"{BACKEND}.tls.{name}", 1, 16) for name in ("alpnProtocols", "keyExchangeGroups")),
        ],
        marks=pytest.mark.claims("limits: ALPN / key exchange lists"),
    ),
    pytest.param(
        [backend("status.conditions", 0, 8), Bound("status.ancestors[0].conditions", 1, 8)],
        marks=pytest.mark.claims("limits: Status conditions"),
    ),
]


def judged(bound: Bound, wanted: int) -> set[str]:
    """What the models say of the objects that have this size at the path."""
    rows = [row for row in ROWS if (row.kind, row.path) == (bound.kind, bound.path) and size(row.value) == wanted]
    return {verdict(row)[0] for row in rows if not _is_about_something_else(row, wanted, bound)}


def _is_about_something_else(row: Row, wanted: int, bound: Bound) -> bool:
    """Whether a value of a size that is taken is refused for another reason, as its row of the table says."""
    inside = (bound.low is None or wanted >= bound.low) and (bound.high is None or wanted <= bound.high)
    return inside and row.verdict == "invalid"


def check(bound: Bound) -> None:
    assert bound.low is not None or bound.high is not None
    expected: dict[int, str] = {}
    if bound.low is not None:
        expected |= {bound.low: "valid"} | ({bound.low - 1: "invalid"} if bound.low > 0 else {})
    if bound.high is not None:
        expected |= {bound.high: "valid", bound.high + 1: "invalid"}
    assert {wanted: judged(bound, wanted) for wanted in expected} == {n: {word} for n, word in expected.items()}, bound


def check_default(default: Default) -> None:
    (row,) = [each for each in DEFAULTS if (each.kind, each.path) == (default.kind, default.path)]
    model = KINDS[row.kind].model
    written = model.model_validate({"kind": row.kind, **OBJECTS[row.kind], "spec": row.within})
    value: Any = written.model_dump(by_alias=True, mode="json")
    for part in parts(default.path):
        value = value[part]
    assert value == default.value, default


@pytest.mark.parametrize("limits", LIMITS)
def test_limits(limits: Sequence[Bound | Default]) -> None:
    for limit in limits:
        if isinstance(limit, Bound):
            check(limit)
        else:
            check_default(limit)
