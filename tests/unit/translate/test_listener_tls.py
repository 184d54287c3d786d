"""TLS of listeners: what proxies get of certificates and of authorities, and what status says."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from controlplane.translate.gateway import listeners
from tests.fakes.certificates import Authority, Issued
from tests.unit.translate.golden import NOW, World, objects

ROOT, OTHER = Authority("one"), Authority("two")
PAIRS = {name: ROOT.issue(f"{name}.example", days=3650) for name in ("a", "b", "c")}
CLASS = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright}
spec: {controllerName: gatewright.dev/controller}
"""
NO_CERTIFICATE = "Programmed=False Invalid: no certificate can be used, so every handshake fails"


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "SERVED_PROTOCOLS", frozenset({"HTTP", "HTTPS", "TLS"}))


def listener(name: str, port: int = 443, protocol: str = "HTTPS", **tls: Any) -> dict[str, Any]:
    return {"name": name, "port": port, "protocol": protocol, "hostname": f"{name}.example", "tls": tls or None}


def refs(*names: str) -> list[dict[str, str]]:
    """Names, of other namespaces with a slash."""
    return [
        {"namespace": each.partition("/")[0], "name": each.partition("/")[2]} if "/" in each else {"name": each}
        for each in names
    ]


def gateway(*listeners_: dict[str, Any], tls: dict[str, Any] | None = None) -> str:
    spec = {"gatewayClassName": "gatewright", "listeners": listeners_, **({"tls": tls} if tls else {})}
    item = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "gw"}, "spec": spec}
    return json.dumps(item)


def secret(name: str, pair: Issued, namespace: str = "default", **more: str) -> str:
    data = {"tls.crt": pair.chain.decode(), "tls.key": pair.key.decode(), **more}
    meta = {"name": name, "namespace": namespace}
    return json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data})


def authorities(name: str, *found: Authority, namespace: str = "default", **more: str) -> str:
    data = {"ca.crt": "".join(each.pem.decode() for each in found), **more}
    meta = {"name": name, "namespace": namespace}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


def grant(kind: str, namespace: str = "away", of: str = "Gateway") -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {{name: "{kind.lower()}s", namespace: {namespace}}}
spec:
  from: [{{group: gateway.networking.k8s.io, kind: {of}, namespace: default}}]
  to: [{{group: "", kind: {kind}}}]
"""


def world(*texts: str) -> World:
    made = World()
    made.apply(objects("\n---\n".join([CLASS, *texts])))
    return made


def conditions(made: World, name: str = "", kind: str = "Gateway", of: str = "gw") -> list[str]:
    """Of a listener or, without a name, of the object."""
    status = made.program.status(kind, "default", of)
    assert status is not None
    found = next(each for each in status["listeners"] if each["name"] == name) if name else status
    lines = (f"{each['type']}={each['status']} {each['reason']}: {each['message']}" for each in found["conditions"])
    return [line.removesuffix(": ") for line in lines]


def tls_of(made: World, name: str, owner: str = "gateway/default/gw") -> dict[str, Any] | None:
    found = made.messages().get(f"listener/{owner}/{name}")
    return found["listener"].get("tls") if found is not None else None


def certificates(made: World) -> dict[str, dict[str, bytes]]:
    """What proxies have of Secrets, by resource."""
    return {
        name: {entry: base64.b64decode(value) for entry, value in message["secret"]["data"].items()}
        for name, message in made.messages().items()
        if name.startswith("secret/")
    }


def test_a_listener_has_its_certificates_in_the_order_written_and_proxies_no_other_entry() -> None:
    made = world(
        gateway(listener("x", certificateRefs=refs("b", "a", "b"))),
        secret("a", PAIRS["a"], **{"ca.key": "hidden"}),
        secret("b", PAIRS["b"]),
        secret("c", PAIRS["c"]),
    )
    assert tls_of(made, "x") == {
        "mode": "TLS_MODE_TERMINATE",
        "certificates": ["secret/default/b/tls", "secret/default/a/tls"],
    }
    assert certificates(made) == {
        f"secret/default/{name}/tls": {"tls.crt": PAIRS[name].chain, "tls.key": PAIRS[name].key} for name in ("a", "b")
    }
    assert conditions(made, "x")[2] == "ResolvedRefs=True ResolvedRefs"


def test_the_good_certificates_of_a_listener_are_served_where_others_are_bad() -> None:
    made = world(gateway(listener("x", certificateRefs=refs("none", "a"))), secret("a", PAIRS["a"]))
    assert tls_of(made, "x") == {"mode": "TLS_MODE_TERMINATE", "certificates": ["secret/default/a/tls"]}
    assert conditions(made, "x") == [
        "Accepted=True Accepted",
        "Programmed=False Pending: 0 proxies connected",
        "ResolvedRefs=False InvalidCertificateRef: Secret default/none does not exist",
    ]


def test_a_listener_without_a_usable_certificate_is_sent_so_that_no_other_takes_its_place() -> None:
    made = world(gateway(listener("x", certificateRefs=refs("none"))))
    assert tls_of(made, "x") == {"mode": "TLS_MODE_TERMINATE"}
    assert conditions(made, "x") == [
        "Accepted=True Accepted",
        NO_CERTIFICATE,
        "ResolvedRefs=False InvalidCertificateRef: Secret default/none does not exist",
    ]


@pytest.mark.parametrize("tls", [None, {"certificateRefs": []}])
def test_https_without_certificates_is_refused(tls: dict[str, Any] | None) -> None:
    if tls is not None:  # refused by who decodes it
        with pytest.raises(AssertionError, match="certificateRefs or options must be set"):
            world(gateway({**listener("x"), "tls": tls}))
        return
    made = world(gateway(listener("x"), listener("y", certificateRefs=refs("a"))), secret("a", PAIRS["a"]))
    assert conditions(made, "x")[:2] == [
        "Accepted=False UnsupportedValue: protocol HTTPS needs tls.certificateRefs",
        "Programmed=False Invalid: not accepted",
    ]
    assert tls_of(made, "x") is None and tls_of(made, "y") is not None
    assert conditions(made)[0] == "Accepted=True ListenersNotValid: not valid: x"


def test_options_refuse_their_listener_alone() -> None:
    with_options = listener("x", certificateRefs=refs("a"), options={"a.example/b": "c"})
    made = world(gateway(with_options, listener("y", certificateRefs=refs("a"))), secret("a", PAIRS["a"]))
    assert conditions(made, "x")[0].startswith(
        "Accepted=False UnsupportedValue: not supported: spec.listeners[0].tls.opt"
    )
    assert conditions(made, "y")[0] == "Accepted=True Accepted"


def test_passthrough_needs_no_certificate_and_names_none() -> None:
    made = world(gateway(listener("x", protocol="TLS", mode="Passthrough", certificateRefs=refs("none"))))
    assert tls_of(made, "x") == {"mode": "TLS_MODE_PASSTHROUGH"}
    assert [each.partition(":")[0] for each in conditions(made, "x")] == [
        "Accepted=True Accepted",
        "Programmed=False Pending",
        "ResolvedRefs=True ResolvedRefs",
    ]


def test_http_listeners_have_no_tls() -> None:
    assert tls_of(world(gateway(listener("x", protocol="HTTP"))), "x") is None


def test_a_new_certificate_is_one_message_and_one_that_is_missing_none() -> None:
    made = world(gateway(listener("x", certificateRefs=refs("a"))), secret("a", PAIRS["a"]))
    before = len(made.batches)
    made.put(secret("a", PAIRS["b"]))
    assert [[name for _, _, name, _ in batch] for batch in made.batches[before:]] == [["secret/default/a/tls"]]
    made.apply([("Secret", ("default", "a"), None)])
    assert certificates(made) == {}
    assert conditions(made, "x")[1] == NO_CERTIFICATE


def test_a_secret_of_another_namespace_leaves_it_by_a_grant_alone() -> None:
    made = world(gateway(listener("x", certificateRefs=refs("away/a"))), secret("a", PAIRS["a"], "away"))
    assert certificates(made) == {}
    made.put(grant("Secret"))
    assert [*certificates(made)] == ["secret/away/a/tls"]
    made.apply([("ReferenceGrant", ("away", "secrets"), None)])
    assert certificates(made) == {}


def test_a_policy_may_read_the_secret_of_a_listener_as_a_whole() -> None:
    policy = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: keys}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic: {apiKeyAuthentication: {secretRef: {name: a}}}
"""
    made = world(gateway(listener("x", certificateRefs=refs("a"))), secret("a", PAIRS["a"], key="k"), policy)
    assert {name: sorted(entries) for name, entries in certificates(made).items()} == {
        "secret/default/a": ["key", "tls.crt", "tls.key"],
        "secret/default/a/tls": ["tls.crt", "tls.key"],
    }


def test_what_proxies_refuse_of_a_certificate_stands_on_its_listeners() -> None:
    made = world(
        gateway(listener("x", certificateRefs=refs("a")), listener("y", certificateRefs=refs("b"))),
        *(secret(name, PAIRS[name]) for name in ("a", "b")),
    )
    made.program.refuse("default/gw", {"secret/default/a/tls": "ee key too small"})
    assert conditions(made, "x")[1] == "Programmed=False Rejected: ee key too small"
    assert conditions(made, "y")[1] == "Programmed=False Pending: 0 proxies connected"


# Certificates of clients

VALID = {"validation": {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "ca"}]}}


def validated(default: dict[str, Any], *per_port: tuple[int, dict[str, Any]], more: tuple[str, ...] = ()) -> World:
    """Of two ports of TLS and one of HTTP."""
    return world(
        gateway(
            listener("x", certificateRefs=refs("a")),
            listener("y", 8443, certificateRefs=refs("a")),
            listener("raw", 9443, "TLS", mode="Passthrough"),
            listener("plain", 80, "HTTP"),
            tls={"frontend": {"default": default, "perPort": [{"port": port, "tls": tls} for port, tls in per_port]}},
        ),
        secret("a", PAIRS["a"]),
        *more,
    )


def ca(*names: str, kind: str = "ConfigMap", **more: Any) -> dict[str, Any]:
    found = [{"group": "", "kind": kind, **each} for each in refs(*names)]
    return {"validation": {"caCertificateRefs": found, **more}}


def verified(made: World, name: str) -> dict[str, Any] | None:
    found = tls_of(made, name)
    assert found is not None, conditions(made, name)
    return found.get("client_validation")


def test_ports_have_the_default_or_what_is_said_of_them() -> None:
    made = validated(
        ca("ca"),
        (8443, ca("both", "ca", mode="AllowInsecureFallback")),
        more=(authorities("ca", ROOT), authorities("both", ROOT, OTHER)),
    )
    one, two = ROOT.pem.decode(), OTHER.pem.decode()
    assert verified(made, "x") == {"mode": "CLIENT_VALIDATION_MODE_ALLOW_VALID_ONLY", "authorities": [one]}
    assert verified(made, "y") == {
        "mode": "CLIENT_VALIDATION_MODE_ALLOW_INSECURE_FALLBACK",
        "authorities": [one + two, one],
    }
    assert tls_of(made, "raw") == {"mode": "TLS_MODE_PASSTHROUGH"} and tls_of(made, "plain") is None


def test_a_port_may_be_without() -> None:
    made = validated(ca("ca"), (8443, {}), more=(authorities("ca", ROOT),))
    assert verified(made, "x") is not None and verified(made, "y") is None


def test_lists_of_revoked_certificates_travel_along() -> None:
    gone = ROOT.revoke(PAIRS["b"]).decode()
    made = validated(ca("ca"), more=(authorities("ca", ROOT, **{"ca.crl": gone}),))
    assert (verified(made, "x") or {})["revocations"] == [gone]


INSECURE = "InsecureFrontendValidationMode=True ConfigurationChanged: clients without a valid certificate are served"


@pytest.mark.parametrize("default", [True, False])
def test_the_insecure_mode_is_said_on_the_gateway(default: bool) -> None:
    loose, strict = ca("ca", mode="AllowInsecureFallback"), ca("ca")
    made = validated(
        loose if default else strict, (8443, strict if default else loose), more=(authorities("ca", ROOT),)
    )
    assert conditions(made)[2:] == [f"{INSECURE}: mode AllowInsecureFallback"]
    assert len(conditions(validated(strict, more=(authorities("ca", ROOT),)))) == 2


@pytest.mark.parametrize(
    ("settings", "more", "reason", "message"),
    [
        (ca("none"), (), "InvalidCACertificateRef", "ConfigMap default/none does not exist"),
        (
            ca("ca"),
            (authorities("ca"),),
            "InvalidCACertificateRef",
            "ConfigMap default/ca has an entry ca.crt that is no certificate in PEM form",
        ),
        (
            ca("ca"),
            (authorities("ca", ROOT, **{"ca.crl": "hello"}),),
            "InvalidCACertificateRef",
            "ConfigMap default/ca has an entry ca.crl that is no list of revoked certificates in PEM form",
        ),
        (
            ca("ca", kind="Secret"),
            (),
            "InvalidCACertificateKind",
            "Secret ca: certificates of authorities are in ConfigMaps",
        ),
        (
            ca("away/ca"),
            (authorities("ca", ROOT, namespace="away"), grant("Secret")),
            "RefNotPermitted",
            "ConfigMap away/ca: no ReferenceGrant in namespace away permits Gateways of namespace default",
        ),
        (
            ca("none", "away/ca"),
            (authorities("ca", ROOT, namespace="away"), grant("ConfigMap", of="ListenerSet")),
            "RefNotPermitted",
            "ConfigMap default/none does not exist; "
            "ConfigMap away/ca: no ReferenceGrant in namespace away permits Gateways of namespace default",
        ),
    ],
)
def test_without_an_authority_the_listeners_of_tls_are_refused(
    settings: dict[str, Any], more: tuple[str, ...], reason: str, message: str
) -> None:
    made = validated(settings, (8443, {}), more=more)
    assert conditions(made, "x") == [
        f"Accepted=False NoValidCACertificate: {message}",
        "Programmed=False Invalid: not accepted",
        f"ResolvedRefs=False {reason}: {message}",
    ]
    assert tls_of(made, "x") is None
    for name in ("y", "raw", "plain"):
        assert conditions(made, name)[0] == "Accepted=True Accepted"
    assert conditions(made)[0] == "Accepted=True ListenersNotValid: not valid: x"


def test_one_authority_of_several_is_enough() -> None:
    made = validated(ca("none", "away/ca"), more=(authorities("ca", ROOT, namespace="away"), grant("ConfigMap")))
    assert (verified(made, "x") or {})["authorities"] == [ROOT.pem.decode()]
    assert conditions(made, "x")[::2] == [
        "Accepted=True Accepted",
        "ResolvedRefs=False InvalidCACertificateRef: ConfigMap default/none does not exist",
    ]


def test_it_follows_the_config_map() -> None:
    made = validated(ca("ca"))
    said = [conditions(made, "x")[0].partition(":")[0]]
    for text in (authorities("ca", ROOT), authorities("ca"), authorities("ca", OTHER)):
        made.put(text)
        said.append(conditions(made, "x")[0].partition(":")[0])
    refused, accepted = "Accepted=False NoValidCACertificate", "Accepted=True Accepted"
    assert said == [refused, accepted, refused, accepted]
    assert (verified(made, "x") or {})["authorities"] == [OTHER.pem.decode()]


def test_listeners_of_sets_are_under_the_settings_of_the_gateway() -> None:
    item = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "ListenerSet",
        "metadata": {"name": "set"},
        "spec": {
            "parentRef": {"name": "gw"},
            "listeners": [listener("s", 8443, certificateRefs=refs("b")), listener("t", certificateRefs=refs("b"))],
        },
    }
    own = json.loads(gateway(listener("x", certificateRefs=refs("a")), tls={"frontend": {"default": ca("ca")}}))
    own["spec"]["tls"]["frontend"]["perPort"] = [{"port": 8443, "tls": {}}]
    own["spec"]["allowedListeners"] = {"namespaces": {"from": "All"}}
    made = world(json.dumps(own), json.dumps(item), secret("b", PAIRS["b"]), secret("a", PAIRS["a"]))
    assert conditions(made, "t", "ListenerSet", "set")[0].startswith("Accepted=False NoValidCACertificate")
    assert conditions(made, "s", "ListenerSet", "set")[0] == "Accepted=True Accepted"
    made.put(authorities("ca", ROOT))
    assert "client_validation" in (tls_of(made, "t", "listenerset/default/set") or {})
    assert "client_validation" not in (tls_of(made, "s", "listenerset/default/set") or {"client_validation": 0})
    assert sorted(certificates(made)) == ["secret/default/a/tls", "secret/default/b/tls"]


# Expiry

DAY = 86_400.0


def expiring(made: World, name: str) -> list[str]:
    return [each for each in conditions(made, name) if each.startswith("CertificateExpiring")]


def test_status_says_fourteen_days_before_that_a_certificate_expires() -> None:
    short = ROOT.issue("a.example", days=(NOW - time.time()) / DAY + 20)
    end = short.certificate.not_valid_after_utc
    made = world(gateway(listener("x", certificateRefs=refs("a", "b"))), secret("a", short), secret("b", PAIRS["b"]))
    assert expiring(made, "x") == []
    written = []
    for day in (5, 7, 21):
        made.now = NOW + day * DAY
        made.apply([])
        written.append(expiring(made, "x"))
    on = f"on {end:%Y-%m-%d at %H:%M} UTC"
    assert written == [
        [],
        [f"CertificateExpiring=True ExpiresSoon: the certificate of Secret default/a expires {on}"],
        [f"CertificateExpiring=True Expired: the certificate of Secret default/a has expired {on}"],
    ]
    made.put(secret("a", PAIRS["a"]))
    assert expiring(made, "x") == []


def test_a_gateway_says_that_its_own_certificate_expires() -> None:
    """That which it shows to backends; its listeners say nothing of it."""
    short = ROOT.issue("a.example", days=(NOW - time.time()) / DAY + 10)
    own = {"backend": {"clientCertificateRef": {"name": "a"}}}
    made = world(
        gateway(listener("x", certificateRefs=refs("b")), tls=own), secret("a", short), secret("b", PAIRS["b"])
    )
    on = f"on {short.certificate.not_valid_after_utc:%Y-%m-%d at %H:%M} UTC"
    wanted = [f"CertificateExpiring=True ExpiresSoon: the certificate of Secret default/a expires {on}"]
    assert (expiring(made, ""), expiring(made, "x")) == (wanted, [])
    made.put(secret("a", PAIRS["a"]))
    assert expiring(made, "") == []


def test_time_that_passes_translates_nothing_where_no_certificate_expires() -> None:
    made = world(gateway(listener("x", certificateRefs=refs("a"))), secret("a", PAIRS["a"]))
    before = made.program.runs()
    made.now += 3 * 3600
    made.apply([])
    after = made.program.runs()
    ran = {name: after[name] - count for name, count in before.items() if after[name] != count}
    assert ran == {"expiring certificates": 1}
