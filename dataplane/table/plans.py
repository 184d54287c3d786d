"""Finished settings of a route, its policies and backends: what a request meets. Built at swap time, then constant.
`binds` has those of the listeners around it.

A plan holds keys of backends, never the backends: those change far more often, so the exchange looks them up in the
table that it pinned. Nothing here points upward, so a dropped table is freed without the garbage collector.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from dataplane.chain.chain import EMPTY, Chain
from dataplane.http.connect_rules import ConnectRule
from dataplane.http.rules import DEFAULT, HttpRules
from dataplane.http.upgrades import WEBSOCKET
from dataplane.http.uri import SCHEME_PORTS
from dataplane.net.keepalive import Keepalive
from dataplane.net.proxy_rules import ProxyRules
from dataplane.tls.settings import DEFAULT as DEFAULT_TLS
from dataplane.tls.settings import TlsSettings
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.kinds import FORWARDED, OUTSIDE, REFUSED, UNKNOWN, WITH_RULES
from dataplane.upstream.settings import NO_CLOUD, NO_SETTINGS, CloudPlace, Settings, Tls, Transport, finished, limited
from gatewright.attach.merge import Attached

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.chain.rules import Rule
    from dataplane.exchange import Exchange
    from dataplane.telemetry.plan import TelemetryPlan
    from dataplane.upstream.backend_rules import Rules, RuleState
    from dataplane.upstream.hashing import Hash
    from dataplane.upstream.health import Health
    from dataplane.upstream.limits import Limits, Quota
    from dataplane.upstream.outgoing import Finisher
    from dataplane.upstream.parts import Part


@dataclass(frozen=True, slots=True)
class Target:
    """One weighted backend reference of a rule. `backend` is "" for a reference that cannot be honoured (`invalid`)."""

    backend: str
    invalid: str = ""
    chain: Chain = EMPTY
    """Filters of this backend reference: run after the route's, once the backend is chosen."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds; None: no limit (`timeouts` of an HTTPRoute or a GatewayPolicy)."""

    request: float | None = None
    backend_request: float | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """`retry` of a rule or a GatewayPolicy: `attempts` tries after the first, at least `backoff` seconds apart."""

    codes: frozenset[int] = frozenset()
    attempts: int = 1
    backoff: float = 0.025
    precondition: Callable[[Exchange], bool] | None = None
    """Asked before the first try: false means one try, and no body is kept."""
    condition: Callable[[Exchange], bool] | None = None
    """Asked for each response: true means another try, as a code of `codes` does."""
    reads_body: bool = False
    """`precondition` reads the request body: it is held first."""
    judges_body: bool = False
    """`condition` reads the response body: it is held for that."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """HTTPRequestMirrorFilter: `numerator` of `denominator` requests are sent to `backend` too."""

    backend: str
    numerator: int = 1
    denominator: int = 1


NO_TIMEOUTS = Timeouts()
NO_KINDS: Mapping[str, object] = MappingProxyType({})
UPGRADES = frozenset((WEBSOCKET,))
"""Protocols that a client may switch to where nothing is configured."""


def as_it_is(x: Exchange, reply: Reply) -> Reply:
    """Of a backend of no kind."""
    return reply


@dataclass(slots=True, eq=False, weakref_slot=True)
class RoutePolicies:
    """What the policies of a rule come to: its steps, and the settings that the proxy carries out. Shared by rules with
    equal policies."""

    chain: Chain = EMPTY
    timeouts: Timeouts = NO_TIMEOUTS
    retry: Retry | None = None
    mirrors: tuple[Mirror, ...] = ()
    host_rewrite: bool | None = None
    """Whether the Host header becomes the backend's; None: as the kind of backend has it (hostRewrite)."""
    upgrades: frozenset[bytes] = UPGRADES
    """Protocols that a client may switch to, in lower case."""
    backend: Settings = NO_SETTINGS
    """How backends are connected to, where they do not say."""
    health: Health | None = None
    backend_limits: Limits | None = None
    backend_hash: Hash | None = None
    rules: Rules | None = None
    """Policies for the sake of backends, where these do not have their own; None: none is set."""
    of_kind: Mapping[str, object] = field(default_factory=lambda: NO_KINDS)
    """What policies say of what happens in a kind of backend, by name of the policy."""
    inline: tuple[Any, ...] = ()
    """Of what it was made: the rule's own filters and fields (`table/built.Built`)."""
    attached: tuple[Attached[Any], ...] = ()
    """Of what it was made: policies that are attached to the route or the rule."""
    under: dict[int, RoutePolicies] | None = None
    """What it comes to below the policies of a listener, by `Upper.number`; filled before the swap."""

    def forget(self, numbers: list[int]) -> None:
        """Drop what it comes to below uppers that no rule has any more."""
        if self.under is not None:
            for number in numbers:
                self.under.pop(number, None)


NO_POLICIES = RoutePolicies()


@dataclass(slots=True, eq=False, weakref_slot=True)
class Upper:
    """Route-phase policies that a listener's routes inherit: those of Gateway, ListenerSet and listener."""

    number: int
    """Unique in this process."""
    ingredients: tuple[Attached[Any], ...]
    policies: RoutePolicies = NO_POLICIES
    """What they say of backends, for calls before there is a route."""


class ListenerPolicies(NamedTuple):
    """What the policies of a listener come to, as fields of its plan."""

    chain: Chain = EMPTY
    upper: Upper | None = None
    telemetry: TelemetryPlan | None = None
    http: HttpRules = DEFAULT
    limits: Any = None
    tls_settings: TlsSettings = DEFAULT_TLS
    tcp: Keepalive | None = None
    proxy_protocol: ProxyRules | None = None
    network: tuple[Rule, ...] = ()
    connect: ConnectRule | None = None


NO_LISTENER_POLICIES = ListenerPolicies()


GRPC_ROUTE = "GRPCRoute"
MOST_DESTINATIONS = 1024
"""Destinations that requests have named, for which a backend remembers the plan."""
MANY = 256
"""Rules of routes for which a backend remembers its plan: those of rules that are gone are not recognized."""


@dataclass(slots=True, eq=False)
class RoutePlan:
    """One rule of a route."""

    key: str
    """Key of its resource."""
    log: str
    """Ready-made log fields: ` route=ns/name route_rule=0`."""
    log_json: str
    """The same as JSON: `,"route":"ns/name","route_rule":"0"`."""
    policies: RoutePolicies = NO_POLICIES
    """Those of the route and the rule. What a request meets also depends on its listener (`RoutePolicies.under`)."""
    targets: tuple[Target, ...] = ()
    """Those with a weight; none: no valid backend, answered with 500 unless a step answers."""
    weights: tuple[int, ...] = ()
    """Cumulative weights of `targets`; empty when there is one target or none."""
    order: str = ""
    """Ties between equal matches go to the smaller text, then to the smaller `rule_index`."""
    rule_index: int = 0
    rule: str = ""
    """The rule's own name."""
    kind: str = "HTTPRoute"
    """Kind of the route object."""
    http_version: int = 0
    """Version of HTTP that backends are spoken to with (`upstream/versions`) where no policy names one."""
    traces: bool = False
    """One of its matches names the method TRACE, which is refused otherwise."""
    is_named: bool = False
    """It says for which hosts it is."""


class Destination(NamedTuple):
    """What of a backend does not depend on policies."""

    kind: str = FORWARDED
    """Its row of `backends/registry`."""
    name: str = ""
    """Its host, in lower case: a Service's is that of the cluster's DNS; "" for a Unix socket."""
    port: int = 0
    """0: that of the scheme (`static.host` without a port)."""
    version: int = 0
    """What the Service port says of the version of HTTP."""
    speaks_tls: Tls | None = None
    """The Service port says that it speaks TLS: how, where no policy says it."""
    other: Endpoint | None = None
    """Of an address without a port: the endpoint with TLS."""
    refused: str = ""
    """Why nothing may be sent to it, whatever policies say."""
    application: str = ""
    """What stands between requests and their carrier (`kinds.Kind.application`)."""
    refusal: Callable[[Exchange, Reply], Reply] = as_it_is
    """As `kinds.Kind.refusal`."""
    keeps_name: bool = True
    """Requests keep their host where no `hostRewrite` says otherwise, unless the backend is a host name."""
    type: str = UNKNOWN
    protocol: str = "http"
    """As `kinds.Kind` has them, for expressions."""
    fallback: Settings = NO_SETTINGS
    """What counts where no policy says anything of the same setting."""
    cloud: CloudPlace = NO_CLOUD
    """Whom credentials of clouds are for, where its host does not say it."""
    finishers: tuple[Finisher, ...] = ()
    """Of its kind; credentials go behind them."""
    by_request: bool = False
    """As `kinds.Kind` has it."""

    def port_of(self, is_tls: bool) -> int:
        return self.port or SCHEME_PORTS[b"https" if is_tls else b"http"]

    def authority(self, is_tls: bool) -> bytes:
        """The Host header of a request that is sent under its own name (RFC 9110 7.2)."""
        name, port = f"[{self.name}]" if ":" in self.name else self.name, self.port_of(is_tls)
        is_usual = not name or port == SCHEME_PORTS[b"https" if is_tls else b"http"]
        return name.encode() if is_usual else f"{name}:{port}".encode()


NOWHERE = Destination()


@dataclass(slots=True, eq=False)
class BackendPlan:
    """One backend with the endpoints that can be chosen now."""

    key: str
    endpoints: tuple[Endpoint, ...] = ()
    host: bytes = b""
    """Host name to resolve (static backends with a name): endpoints then come from DNS, with `port`."""
    port: int = 0
    authority: bytes = b""
    """What hostRewrite `Auto` makes of the Host header; b"": nothing (a Unix socket has no name)."""
    renames: bool = False
    """What no `hostRewrite` at all means: `Auto`."""
    application: str = ""
    """What stands between requests and their carrier (`kinds.Kind.application`); "": nothing."""
    kind: str = FORWARDED
    """Its row of `backends/registry`."""
    version: int = 0
    """Of HTTP (`upstream/versions`)."""
    transport: Transport | None = None
    """How connections to it are made; None: the plain way."""
    request_timeout: float | None = None
    """Seconds for one try, to the head of its response."""
    refused: str = ""
    """Why nothing may be sent to it; `kind` is then `REFUSED`."""
    rules: Rules | None = None
    """What policies say for its sake; `kind` is then `WITH_RULES`."""
    rule_state: RuleState | None = None
    """Who carries out `rules`, from the first request on (`upstream/lease.Leases.rule_state`)."""
    finishers: tuple[Finisher, ...] | None = None
    """Who finishes each request that is sent to it (`upstream/outgoing`): what is attached to the backend itself, in
    the order of the table there. None: no step. Never of a backend that only has parts: they have their own."""
    steps: Chain | None = None
    """Steps of the backend (`backend.extAuth`, `backend.transformation`), on each try before its kind. Of a backend
    that has parts they see what clients send; those of a part what is sent to that. None: there are none."""
    far: tuple[Endpoint, ...] = ()
    """Endpoints that are for proxies of other zones: for when all of `endpoints` are evicted."""
    own: Settings = NO_SETTINGS
    """Those of its own policies: these of routes count where it does not say."""
    where: Destination = NOWHERE
    of_kind: object = None
    """What its kind has made of it (`kinds.Kind.plan`); None: it only forwards."""
    parts: tuple[Part, ...] = ()
    """What it sends requests on to."""
    _under: dict[tuple[Settings, int], BackendPlan] | None = None
    _with_rules: dict[int, tuple[Rules, BackendPlan]] | None = None
    _topped: dict[tuple[Settings, Rules | None], BackendPlan] | None = None
    _toward: OrderedDict[tuple[str, int], BackendPlan] | None = None

    @property
    def by_request(self) -> bool:
        """Each request or connection names its destination."""
        return self.where.by_request

    @property
    def type(self) -> str:
        """`backend.type` of expressions."""
        return self.where.type

    @property
    def protocol(self) -> str:
        """`backend.protocol` of expressions."""
        return self.application or self.where.protocol

    @property
    def refused_as_bytes(self) -> str:
        """Why nothing may be sent to it that is no request; "": it may. Its own server that decides about requests is
        asked about no connection, so that what only it lets pass passes nowhere else."""
        if self.refused or self.own.ext_auth is None:
            return self.refused
        return "its extAuth decides about requests, and this is none"

    def beneath(self, settings: Settings, rules: Rules | None, version: int = 0) -> BackendPlan:
        """The same where policies above it say this."""
        plan = self
        if version or settings is not NO_SETTINGS:
            plan = self.under(settings, version)
        return plan if rules is None else plan.with_rules(rules)

    def under(self, settings: Settings, version: int) -> BackendPlan:
        """The same for routes with these settings. `version`: what holds where no policy names one, of a GRPCRoute.
        Made once for each."""
        if self._under is None:
            self._under = {}
        made = self._under.get((settings, version))
        if made is None:
            made = self._under[settings, version] = planned(
                replace(self, rule_state=None, _under=None, _with_rules=None, _topped=None, _toward=None),
                settings,
                version,
            )
        return made

    def topped(self, settings: Settings, rules: Rules | None) -> BackendPlan:
        """The same where a backend of which it is a part says this itself, which wins over its own policies. Made once
        for each."""
        if self._topped is None:
            self._topped = {}
        made = self._topped.get((settings, rules))
        if made is None:
            both = rules if rules is None or self.rules is None else rules.over(self.rules)
            top = replace(self, own=settings.over(self.own), rules=both or self.rules, rule_state=None)
            top._under = top._with_rules = top._topped = top._toward = None
            made = self._topped[settings, rules] = planned(top)
        return made

    def with_rules(self, rules: Rules) -> BackendPlan:
        """The same for routes whose policies say this for its sake; made once. Its own rules win."""
        if self.refused or self.of_kind is not None:  # they count for its parts
            return self
        found = None if self._with_rules is None else self._with_rules.get(id(rules))
        if found is not None:
            return found[1]
        if self._with_rules is None or len(self._with_rules) >= MANY:
            self._with_rules = {}
        both = rules if self.rules is None else self.rules.over(rules)
        made = self
        if both != self.rules:
            kind = self.kind if self.by_request else WITH_RULES
            made = replace(
                self, kind=kind, rules=both, rule_state=None, _under=None, _with_rules=None, _topped=None, _toward=None
            )
            made.transport = limited(made.transport, _quota(made))
        self._with_rules[id(rules)] = rules, made  # kept: its id is not used again meanwhile
        return made

    def toward(self, host: str, port: int, endpoints: tuple[Endpoint, ...]) -> BackendPlan:
        """Of a backend whose destination each request names: the plan of one, which has these endpoints and no name to
        look up. Made once while they are the same; those that were used longest ago are given back."""
        if self._toward is None:
            self._toward = OrderedDict()
        made = self._toward.get((host, port))
        if made is None or made.endpoints != endpoints:
            where = self.where._replace(kind=FORWARDED, name=host, port=port, by_request=False)
            made = replace(self, endpoints=endpoints, where=where, rule_state=None)
            made._under = made._with_rules = made._topped = made._toward = None
            made = self._toward[host, port] = planned(made, version=self.version)
            made.steps = self.steps
            if len(self._toward) > MOST_DESTINATIONS:
                self._toward.popitem(last=False)
        self._toward.move_to_end((host, port))
        return made


def at_socket(key: str, path: str) -> BackendPlan:
    """Another process of this proxy, which listens on a Unix socket. In no table."""
    return BackendPlan(key, (Endpoint("", 0, path),))


def at_host(key: str, host: str, port: int, tls: Tls | None) -> BackendPlan:
    """A server that no configuration names. In no table. `tls`: None for plain text."""
    where = Destination(OUTSIDE, host.lower(), port)
    is_address = ":" in host or host.replace(".", "").isdigit()
    endpoints = (Endpoint(host, port, ""),) if is_address else ()
    name = b"" if is_address else host.lower().encode()
    return planned(BackendPlan(key, endpoints, name, own=Settings(tls=tls), where=where))


def planned(plan: BackendPlan, settings: Settings = NO_SETTINGS, version: int = 0) -> BackendPlan:
    """The plan below settings of a route, finished. It must not be shared yet: this changes it."""
    where = plan.where
    all_settings = plan.own.over(settings).over(where.fallback)
    steps = all_settings.steps
    plan.steps = Chain(steps) if steps else None
    if plan.of_kind is not None:  # other settings are for its parts
        plan.kind, plan.refused = REFUSED if where.refused else where.kind, where.refused
        return plan
    if where.by_request:  # they are finished for each destination (`BackendPlan.toward`)
        return _for_any(plan, all_settings, version)
    if all_settings.tls is None and where.speaks_tls is not None:
        all_settings = replace(all_settings, tls=where.speaks_tls)
    made = finished(all_settings, version or where.version, where.name)
    is_tls = made.transport is not None and made.transport.tls is not None
    plan.version, plan.request_timeout = made.version, made.request_timeout
    plan.transport = limited(made.transport, _quota(plan))
    plan.refused = where.refused or made.refused
    plan.kind = REFUSED if plan.refused else where.kind if plan.rules is None else WITH_RULES
    plan.authority = where.authority(is_tls)
    plan.renames = bool(plan.host) or not where.keeps_name
    plan.application = where.application
    credentials = () if all_settings.auth is None else (all_settings.auth.finisher(where.name, is_tls, where.cloud),)
    plan.finishers = (*where.finishers, *credentials) or None
    if plan.host:
        plan.port = where.port_of(is_tls)
    elif where.other is not None:
        plan.endpoints = (where.other,) if is_tls else plan.endpoints
    return plan


def _for_any(plan: BackendPlan, settings: Settings, version: int) -> BackendPlan:
    """What holds for all destinations of a plan that is for none yet."""
    where, http = plan.where, settings.http
    plan.kind, plan.refused = REFUSED if where.refused else where.kind, where.refused
    plan.own, plan.version = settings, version or where.version
    plan.request_timeout = None if http is None else http.request_timeout
    return plan


def _quota(plan: BackendPlan) -> Quota | None:
    """What policies say about the connections to a backend."""
    limits = None if plan.rules is None else plan.rules.backend_limits
    return None if limits is None else limits.quota(plan.key)
