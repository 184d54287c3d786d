"""Connections of TLS through a whole proxy in memory: what clients ask for decides listener and protocol."""

from __future__ import annotations

import pytest
from OpenSSL import SSL

from dataplane.tls.handshakes import Handshakes, Stepping
from gatewright.wire.v1 import tls_pb2
from tests.fakes.certificates import EC, RSA, Authority, Issued
from tests.fakes.memory_proxy import ROUTES
from tests.fakes.secure_proxy import SecureProxy, TlsClient, client_context, secure

AUTHORITY = Authority()
OTHER = Authority("Somebody")
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
CERTIFICATE = AUTHORITY.issue("shop.example", "*.shop.example", "pay.example")

SEVERAL = """
binds:
- port: 8443
  listeners:
  - name: shop
    hostname: shop.example
    routes: [{name: shop, backends: [{host: "127.0.0.1:9000"}]}]
  - name: wild
    hostname: "*.shop.example"
    routes: [{name: wild, backends: [{host: "127.0.0.1:9000"}]}]
  - name: pay
    hostname: pay.example
    routes: [{name: pay, backends: [{host: "127.0.0.1:9000"}]}]
"""
WITH_ANY = SEVERAL + '  - name: any\n    routes: [{name: any, backends: [{host: "127.0.0.1:9000"}]}]\n'


def several(text: str = SEVERAL) -> SecureProxy:
    """Each listener has a certificate of its own, for the names that its clients ask for."""
    names = {"shop": "shop.example", "wild": "*.shop.example", "pay": "pay.example", "any": "elsewhere.example"}
    listeners = {name: secure(AUTHORITY.issue(host, common_name=name)) for name, host in names.items()}
    return SecureProxy(text, listeners)


def plain() -> SecureProxy:
    return SecureProxy(ROUTES, {"http": secure(CERTIFICATE)})


def shown(client: TlsClient) -> str:
    """Common name of the certificate that the client was shown; "" when its handshake failed."""
    certificate = client.tls.get_peer_certificate(as_cryptography=True)
    return str(certificate.subject.rfc4514_string()).removeprefix("CN=") if certificate is not None else ""


def ask(run: SecureProxy, client: TlsClient, host: str) -> bytes:
    """The status line of a request for `host`, which an endpoint answers if it gets it."""
    before = len(run.connector.upstreams)
    client.received = b""
    client.send(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
    for upstream in run.connector.upstreams:
        if upstream.open and upstream.take():
            upstream.answer(ANSWER)
    assert len(run.connector.upstreams) <= before + 1
    return client.read().partition(b"\r\n")[0]


# --- requests


@pytest.mark.parametrize("piece", [0, 1, 7])
@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
def test_a_request_over_tls_is_served_in_any_pieces(piece: int, version: int) -> None:
    run, context = plain(), client_context(AUTHORITY)
    context.set_min_proto_version(version)
    context.set_max_proto_version(version)
    client = TlsClient(run.connect(), "shop.example", context=context, piece=piece)
    assert client.error == ""
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    assert b"x-forwarded-proto: https\r\n" in run.connector.upstream.received
    run.connector.upstream.answer(ANSWER)
    assert client.read().endswith(b"hi")
    assert ask(run, client, "shop.example") == b"HTTP/1.1 200 OK"  # the connection is kept
    assert run.counted("tls_handshakes_total") == {"full": 1}


def test_large_bodies_pass_both_ways() -> None:
    run = plain()
    client = TlsClient(run.connect(), "shop.example", AUTHORITY)
    body = bytes(range(256)) * 4096
    client.send(b"POST / HTTP/1.1\r\nHost: shop.example\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    assert run.connector.upstream.received.endswith(body)
    run.connector.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    assert client.read().endswith(b"\r\n\r\n" + body)


def test_a_request_that_comes_with_the_end_of_the_handshake_is_served() -> None:
    """One segment has the client's Finished and its request."""
    run = plain()
    far = run.connect()
    client = TlsClient(far, "shop.example", AUTHORITY, handshake=False)
    with pytest.raises(SSL.WantReadError):
        client.tls.do_handshake()
    client.flush()
    client.tls.bio_write(far.take())
    client.tls.do_handshake()
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    assert run.connector.upstream.received.startswith(b"GET / HTTP/1.1\r\n")


def test_the_scheme_of_absolute_targets_and_of_expressions_is_that_of_the_connection() -> None:
    text = ROUTES.replace(
        "    - name: all\n",
        "    - name: all\n      policies: {transformation: {request: {set:"
        " [{name: x-uri, value: request.uri}, {name: x-name, value: destination.hostname}]}}}\n",
    )
    run = SecureProxy(text, {"http": secure(CERTIFICATE)})
    client = TlsClient(run.connect(), "shop.example", AUTHORITY)
    client.send(b"GET https://shop.example/a?b HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    received = run.connector.upstream.received
    assert b"x-uri: https://shop.example/a?b\r\n" in received and b"x-name: shop.example\r\n" in received
    client = TlsClient(run.connect(), "shop.example", AUTHORITY)
    client.send(b"GET http://shop.example/ HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    assert client.read().startswith(b"HTTP/1.1 400 ")


def test_the_end_of_a_connection_is_said_by_close_notify() -> None:
    run = plain()
    client = TlsClient(run.connect(), "shop.example", AUTHORITY)
    client.send(b"GET /x HTTP/1.1\r\nHost: shop.example\r\nconnection: close\r\n\r\n")
    run.connector.upstream.answer(ANSWER)
    assert client.read().endswith(b"hi") and client.ended and not client.far.open


def test_a_client_that_says_close_notify_gets_the_answer_that_is_under_way() -> None:
    run = plain()
    client = TlsClient(run.connect(), "shop.example", AUTHORITY)
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    client.close()
    run.connector.upstream.answer(ANSWER)
    assert client.read().endswith(b"hi")


def test_a_client_that_leaves_without_close_notify_is_gone() -> None:
    run = plain()
    client = TlsClient(run.connect(), "shop.example", AUTHORITY)
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    client.far.half_close()
    assert not client.far.open
    assert [line.split(" reason=")[1].split()[0] for line in run.log_lines()] == ["ClientGone"]


# --- which listener, which certificate


@pytest.mark.parametrize(
    ("name", "certificate"),
    [
        ("shop.example", "shop"),
        ("SHOP.example", "shop"),
        ("a.shop.example", "wild"),
        ("a.b.shop.example", "wild"),
        ("pay.example", "pay"),
    ],
)
@pytest.mark.parametrize("text", [SEVERAL, WITH_ANY], ids=["named", "and any"])
def test_the_server_name_chooses_listener_and_certificate(text: str, name: str, certificate: str) -> None:
    assert shown(TlsClient(several(text).connect(), name)) == certificate


@pytest.mark.parametrize("name", ["elsewhere.example", "example", ""])
def test_other_names_and_none_are_for_the_listener_without_a_hostname(name: str) -> None:
    assert shown(TlsClient(several(WITH_ANY).connect(), name)) == "any"


@pytest.mark.parametrize("name", ["elsewhere.example", "xshop.example", ""])
def test_a_name_that_no_listener_has_ends_without_a_word(name: str) -> None:
    run = several()
    client = TlsClient(run.connect(), name)
    assert client.error and not client.far.open and client.far.received == b""
    assert run.counted("tls_handshake_failures_total") == {"no listener for the server name": 1}


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n", b"\0" * 5, b"\x16\x03\x01\0\0", b"PROXY "]
)
def test_what_is_no_tls_ends_without_a_word(data: bytes) -> None:
    run = several()
    far = run.connect()
    far.send(data)
    assert not far.open and far.received == b""
    assert run.counted("tls_handshake_failures_total") == {"no ClientHello": 1}


def test_a_client_that_leaves_in_its_handshake_leaves_nothing() -> None:
    run = several()
    for bytes_sent in (0, 3, 100):
        far = run.connect()
        client = TlsClient(far, "shop.example", handshake=False)
        with pytest.raises(SSL.WantReadError):
            client.tls.do_handshake()
        hello = client.tls.bio_read(65536)
        if bytes_sent:
            far.send(hello[:bytes_sent])
        far.half_close()
        assert not far.open
    client = TlsClient(run.connect(), "shop.example", handshake=False)
    with pytest.raises(SSL.WantReadError):
        client.tls.do_handshake()
    client.flush()
    client.far.lose(ConnectionResetError())
    assert run.counted("tls_handshake_failures_total") == {"the peer left during the handshake": 1}
    assert len(run.context.connections) == 0


# --- hosts of other listeners


def test_who_is_closed_in_a_handshake_to_make_room_has_not_failed_in_it() -> None:
    run = SecureProxy(f"frontendPolicies: {{limits: {{maxConnections: 1}}}}\n{ROUTES}", {"http": secure(CERTIFICATE)})
    first = TlsClient(run.connect(), "shop.example", AUTHORITY, handshake=False)
    with pytest.raises(SSL.WantReadError):
        first.tls.do_handshake()
    first.flush()
    run.advance(1)
    assert TlsClient(run.connect(("192.0.2.8", 1)), "shop.example", AUTHORITY).error == ""
    assert not first.far.open and run.counted("tls_handshake_failures_total") == {}


def test_handshakes_take_turns_by_the_address_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    run = plain()
    sources: list[str] = []
    add = Handshakes.add

    def noted(handshakes: Handshakes, one: Stepping) -> None:
        sources.append(one.source)
        add(handshakes, one)

    monkeypatch.setattr(Handshakes, "add", noted)
    for peer in ("192.0.2.7", "192.0.2.7", "192.0.2.8"):
        TlsClient(run.connect((peer, 40_000)), "shop.example", AUTHORITY)
    assert list(dict.fromkeys(sources)) == ["192.0.2.7", "192.0.2.8"]


@pytest.mark.parametrize(
    ("text", "name", "host", "status"),
    [
        (SEVERAL, "shop.example", "shop.example", b"200"),
        (SEVERAL, "shop.example", "pay.example", b"421"),
        (SEVERAL, "shop.example", "a.shop.example", b"421"),
        (SEVERAL, "a.shop.example", "b.shop.example", b"200"),
        (SEVERAL, "a.shop.example", "shop.example", b"421"),
        (SEVERAL, "shop.example", "elsewhere.example", b"404"),
        (WITH_ANY, "shop.example", "elsewhere.example", b"421"),
        (WITH_ANY, "", "elsewhere.example", b"200"),
        (WITH_ANY, "", "other.example", b"200"),
        (WITH_ANY, "", "shop.example", b"421"),
        (WITH_ANY, "elsewhere.example", "a.shop.example", b"421"),
    ],
)
def test_a_host_of_another_listener_is_misdirected(text: str, name: str, host: str, status: bytes) -> None:
    run = several(text)
    client = TlsClient(run.connect(), name)
    assert ask(run, client, host).split()[1] == status
    assert ask(run, client, name or "elsewhere.example").split()[1] == b"200"  # the connection serves on


# --- certificates


@pytest.mark.parametrize(
    ("kind", "suites"), [(EC, b"ECDHE-ECDSA-AES128-GCM-SHA256"), (RSA, b"ECDHE-RSA-AES128-GCM-SHA256")]
)
def test_of_several_certificates_the_client_gets_one_that_it_knows_each_with_its_own_chain(
    kind: str, suites: bytes
) -> None:
    issued = {each: Authority(f"between {each}", AUTHORITY).issue("shop.example", kind=each) for each in (EC, RSA)}
    run = SecureProxy(ROUTES, {"http": secure(*issued.values())})
    context = client_context(AUTHORITY)
    context.set_max_proto_version(SSL.TLS1_2_VERSION)
    context.set_cipher_list(suites)
    client = TlsClient(run.connect(), "shop.example", context=context)
    assert client.error == "" and client.tls.get_peer_certificate(as_cryptography=True) == issued[kind].certificate
    chain = client.tls.get_peer_cert_chain(as_cryptography=True)
    assert chain is not None and [each.subject.rfc4514_string() for each in chain[1:]] == [f"CN=between {kind}"]


def test_of_two_certificates_with_keys_of_one_kind_the_first_is_used() -> None:
    first, second = AUTHORITY.issue("shop.example"), AUTHORITY.issue("shop.example")
    run = SecureProxy(ROUTES, {"http": secure(first, second)})
    client = TlsClient(run.connect(), "shop.example", AUTHORITY)
    assert client.tls.get_peer_certificate(as_cryptography=True) == first.certificate


BROKEN = {
    "no certificate": (Issued(b"", CERTIFICATE.key, CERTIFICATE.certificate), "is not in PEM form"),
    "no key": (Issued(CERTIFICATE.chain, b"", CERTIFICATE.certificate), "the private key cannot be read"),
    "another's key": (Issued(CERTIFICATE.chain, OTHER.issue("x").key, CERTIFICATE.certificate), "is not that of the"),
}


@pytest.mark.parametrize(("broken", "why"), BROKEN.values(), ids=BROKEN)
def test_a_certificate_that_cannot_be_used_is_refused_and_the_others_serve(broken: Issued, why: str) -> None:
    run = SecureProxy(ROUTES, {"http": secure(broken, CERTIFICATE)}, allow_refused=True)
    (reason,) = run.applier.outcome.refused.values()
    assert why in reason and "PRIVATE" not in reason
    assert TlsClient(run.connect(), "shop.example", AUTHORITY).error == ""
    run.listeners = {"http": secure(CERTIFICATE)}
    run.load(ROUTES)
    assert run.applier.outcome.standing == {}


@pytest.mark.parametrize("broken", [broken for broken, _ in BROKEN.values()], ids=list(BROKEN))
def test_without_a_certificate_that_can_be_used_nobody_is_served(broken: Issued) -> None:
    run = SecureProxy(ROUTES, {"http": secure(broken)}, allow_refused=True)
    client = TlsClient(run.connect(), "shop.example")
    assert client.error and not client.far.open and client.far.received == b""
    assert run.counted("tls_handshake_failures_total") == {"no certificate of the listener can be used": 1}


def test_new_connections_get_a_new_certificate_and_open_ones_go_on() -> None:
    run = plain()
    before = TlsClient(run.connect(), "shop.example", AUTHORITY)
    before.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    renewed = AUTHORITY.issue("shop.example")
    run.listeners = {"http": secure(renewed)}
    run.load(ROUTES)
    run.connector.upstream.answer(ANSWER)
    assert before.read().endswith(b"hi") and ask(run, before, "shop.example").endswith(b"200 OK")
    after = TlsClient(run.connect(), "shop.example", AUTHORITY)
    assert after.tls.get_peer_certificate(as_cryptography=True) == renewed.certificate


def test_a_secret_that_comes_later_opens_the_listener() -> None:
    run = SecureProxy(ROUTES, {"http": secure(CERTIFICATE)})
    store = run.applier.store
    secrets = [key for key in run.keys if key.startswith("secret/")]
    assert store.secret_users.of(secrets[0]) == ["listener/gateway/default/standalone/http"]


# --- sessions


def resumed(run: SecureProxy, first: TlsClient, context: SSL.Context) -> bool:
    """Whether a new connection takes up the session of the first one, which has had an answer."""
    session = first.tls.get_session()
    again = TlsClient(run.connect(), "shop.example", context=context, session=session)
    assert again.error == "" and ask(run, again, "shop.example") == b"HTTP/1.1 200 OK"
    return run.counted("tls_handshakes_total").get("resumed", 0) > 0


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
@pytest.mark.parametrize(
    ("change", "resumes"),
    [("nothing", True), ("same state", True), ("certificate", False), ("12 hours", False), ("11 hours", True)],
)
def test_a_session_is_taken_up_while_certificate_and_settings_are_the_same(
    version: int, change: str, resumes: bool
) -> None:
    run, context = plain(), client_context(AUTHORITY)
    context.set_max_proto_version(version)
    first = TlsClient(run.connect(), "shop.example", context=context)
    assert ask(run, first, "shop.example") == b"HTTP/1.1 200 OK"
    if change == "certificate":
        run.listeners = {"http": secure(AUTHORITY.issue("shop.example"))}
    if change.endswith("hours"):
        run.advance(3600 * int(change.removesuffix(" hours")))
    elif change != "nothing":
        run.load(ROUTES)
    assert resumed(run, first, context) is resumes


# --- certificates of clients


def validated(mode: tls_pb2.ClientValidationMode, *authorities: bytes, revoked: bytes = b"") -> SecureProxy:
    validation = tls_pb2.ClientValidation(mode=mode, authorities=[each.decode() for each in authorities])
    if revoked:
        validation.revocations.append(revoked.decode())
    text = ROUTES.replace(
        "    - name: all\n",
        "    - name: all\n      policies: {transformation: {request: {set: [{name: x-who, value: source.subjectCn},"
        " {name: x-sans, value: \"source.subjectAltNames.map(n, n).join(',')\"},"
        " {name: x-id, value: source.identity.serviceAccount}, {name: x-issuer, value: source.issuer}]}}}\n",
    )
    return SecureProxy(text, {"http": secure(CERTIFICATE, validation=validation)})


STRICT = tls_pb2.CLIENT_VALIDATION_MODE_ALLOW_VALID_ONLY
LENIENT = tls_pb2.CLIENT_VALIDATION_MODE_ALLOW_INSECURE_FALLBACK
SPIFFE = "spiffe://cluster.local/ns/shop/sa/cart"
VALID = AUTHORITY.issue("cart.example", client=True, common_name="cart", uris=(SPIFFE,))
FOREIGN = OTHER.issue("evil.example", client=True, common_name="cart")
FOR_SERVERS = AUTHORITY.issue("cart.example", common_name="cart")
EXPIRED = AUTHORITY.issue("cart.example", client=True, common_name="cart", days=-1)


def seen(run: SecureProxy, identity: Issued | None) -> dict[str, str] | None:
    """What expressions read of a client with this certificate; None: it is not served."""
    for version in (SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION):
        context = client_context(AUTHORITY, identity=identity)
        context.set_max_proto_version(version)
        client = TlsClient(run.connect(), "shop.example", context=context)
        if not client.far.open:
            found = None
            continue
        client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
        lines = run.connector.upstream.take().decode().split("\r\n")
        found = dict(line.split(": ", 1) for line in lines if line.startswith("x-") and "forwarded" not in line)
        found.pop("x-request-id")
        run.connector.upstream.answer(ANSWER)
    return found


def test_a_valid_certificate_says_who_the_client_is() -> None:
    for mode in (STRICT, LENIENT):
        assert seen(validated(mode, AUTHORITY.pem), VALID) == {
            "x-who": "cart",
            "x-sans": f"cart.example,{SPIFFE}",
            "x-id": "cart",
            "x-issuer": "CN=Test Root",
        }


@pytest.mark.parametrize(
    "identity", [None, FOREIGN, FOR_SERVERS, EXPIRED], ids=["none", "foreign", "server", "expired"]
)
def test_without_a_valid_certificate_a_client_is_refused_or_nobody(identity: Issued | None) -> None:
    run = validated(STRICT, AUTHORITY.pem)
    assert seen(run, identity) is None
    (reason,) = run.counted("tls_handshake_failures_total")
    assert reason in ("peer did not return a certificate", "certificate verify failed")
    assert seen(validated(LENIENT, AUTHORITY.pem), identity) == {}


def test_without_authorities_no_client_is_valid() -> None:
    assert seen(validated(STRICT), VALID) is None
    assert seen(validated(LENIENT), VALID) == {}


def test_a_revoked_certificate_is_not_valid() -> None:
    gone = AUTHORITY.issue("gone.example", client=True, common_name="gone")
    for mode, without in ((STRICT, None), (LENIENT, {})):
        run = validated(mode, AUTHORITY.pem, revoked=AUTHORITY.revoke(gone))
        assert seen(run, gone) == without
        assert (seen(run, VALID) or {})["x-who"] == "cart"


def test_a_bundle_has_several_authorities() -> None:
    run = validated(STRICT, AUTHORITY.pem + OTHER.pem)
    assert (seen(run, FOREIGN) or {})["x-sans"] == "evil.example"


def test_an_authority_that_cannot_be_read_closes_the_listener() -> None:
    validation = tls_pb2.ClientValidation(authorities=["nothing"])
    run = SecureProxy(ROUTES, {"http": secure(CERTIFICATE, validation=validation)}, allow_refused=True)
    (reason,) = run.applier.outcome.refused.values()
    assert reason == "a certificate of an authority is not in PEM form"
    assert TlsClient(run.connect(), "shop.example", identity=None).error


def test_a_revocation_list_that_cannot_be_read_closes_the_listener() -> None:
    """Without it, clients with revoked certificates would be served."""
    validation = tls_pb2.ClientValidation(authorities=[AUTHORITY.pem.decode()], revocations=["nothing"])
    run = SecureProxy(ROUTES, {"http": secure(CERTIFICATE, validation=validation)}, allow_refused=True)
    (reason,) = run.applier.outcome.refused.values()
    assert reason == "a revocation list is not in PEM form"
    assert TlsClient(run.connect(), "shop.example", identity=None).error


def test_the_identity_of_a_session_is_taken_up_with_it() -> None:
    run = validated(STRICT, AUTHORITY.pem)
    context = client_context(AUTHORITY, identity=VALID)
    first = TlsClient(run.connect(), "shop.example", context=context)
    assert ask(run, first, "shop.example") == b"HTTP/1.1 200 OK"
    again = TlsClient(run.connect(), "shop.example", context=context, session=first.tls.get_session())
    again.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    assert any(b"x-who: cart\r\n" in upstream.received for upstream in run.connector.upstreams)
    assert run.counted("tls_handshakes_total") == {"full": 1, "resumed": 1}


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
@pytest.mark.parametrize("identity", [VALID, FOREIGN], ids=["valid", "foreign"])
def test_where_a_certificate_need_not_be_valid_no_session_is_taken_up(identity: Issued, version: int) -> None:
    """It would not say whether the certificate was, and who showed one of somebody else's would have its name."""
    run = validated(LENIENT, AUTHORITY.pem)
    context = client_context(AUTHORITY, identity=identity)
    context.set_max_proto_version(version)
    first = TlsClient(run.connect(), "shop.example", context=context)
    assert ask(run, first, "shop.example") == b"HTTP/1.1 200 OK"
    assert not resumed(run, first, context)


def test_a_listener_knows_when_the_first_of_its_certificates_expires() -> None:
    soon, late = AUTHORITY.issue("shop.example", days=3), AUTHORITY.issue("shop.example", kind=RSA, days=90)
    run = SecureProxy(ROUTES, {"http": secure(late, soon)})
    (plan,) = run.applier.security.values()
    assert plan.expires == soon.certificate.not_valid_after_utc.timestamp()


def test_open_connections_are_not_served_when_other_certificates_are_asked_for() -> None:
    """The client was believed by rules that are no more; it is told to connect again, and is judged by the new ones."""
    run = validated(STRICT, AUTHORITY.pem)
    client = TlsClient(run.connect(), "shop.example", context=client_context(AUTHORITY, identity=VALID))
    assert ask(run, client, "shop.example") == b"HTTP/1.1 200 OK"
    changed = tls_pb2.ClientValidation(mode=STRICT, authorities=[OTHER.pem.decode()])
    run.listeners = {"http": secure(CERTIFICATE, validation=changed)}
    run.load(ROUTES)
    assert ask(run, client, "shop.example") == b"HTTP/1.1 421 Misdirected Request" and not client.far.open
    assert "validation of clients has changed" in run.log_lines()[-1]
    again = TlsClient(run.connect(), "shop.example", context=client_context(AUTHORITY, identity=VALID))
    assert not again.far.open


def test_a_client_that_is_slow_with_its_hello_meets_what_is_configured_by_then() -> None:
    run = plain()
    far = run.connect()
    renewed = AUTHORITY.issue("shop.example")
    run.listeners = {"http": secure(renewed)}
    run.load(ROUTES)
    client = TlsClient(far, "shop.example", AUTHORITY)
    assert client.tls.get_peer_certificate(as_cryptography=True) == renewed.certificate
