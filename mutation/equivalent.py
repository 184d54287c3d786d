"""Faults that are none: no test can notice them, because what the product does is the same with them.

Each row: file, the line of the source and the line with the fault, as a report shows them, and why nothing changes.
"""

from __future__ import annotations

from typing import Final

EQUIVALENT: Final[dict[tuple[str, str, str], str]] = {
    (
        "controlplane/derive/derived.py",
        "for count, key in enumerate(results, 1):",
        "for count, key in enumerate(results, 2):",
    ): "the first of the slices is one key shorter: others have their turn a key earlier, and nothing else",
    (
        "dataplane/chain/replies.py",
        '("UpgradeNotAllowed", 501, "protocol is not supported", False),  # RFC 9220 3, RFC 8441: extended CONNECT',
        '("UpgradeNotAllowed", 501, "protocol is not supported", True),  # RFC 9220 3, RFC 8441: extended CONNECT',
    ): "only an answer over HTTP/2, where none of them ends its connection",
    (
        "dataplane/http/h2/receiving.py",
        "if length > content:",
        "if (length >= content):",
    ): "nothing is given back then, and what is owed was compared with its window when it grew",
    (
        "dataplane/table/intern.py",
        "finalize(found, self.dead.append, number).atexit = False",
        "finalize(found, self.dead.append, number).atexit = True",
    ): "at the end of the process a number goes into a list that nobody reads any more",
    (
        "controlplane/answers/news.py",
        "if self._due.when() <= loop.time() + seconds:",
        "if (self._due.when() < loop.time() + seconds):",
    ): "a timer that is due at this very moment is made anew, for the same moment",
    (
        "gatewright/api/checks/errors.py",
        "items = next((depth for depth, part in enumerate(reversed(path)) if isinstance(part, str)), 0)",
        "items = next((depth for depth, part in enumerate(reversed(path)) if isinstance(part, str)), 1)",
    ): "every path but the empty one begins with a name, and that one stays empty without its last part",
    (
        "gatewright/api/checks/errors.py",
        "fields = (_field_at(model, path[:length]) for length in range(1, len(path) + 1))",
        "fields = (_field_at(model, path[:length]) for length in range(1, len(path) + 2))",
    ): "the whole path is looked at twice",
    (
        "gatewright/api/checks/errors.py",
        "line = _one_line(value[:64])",
        "line = _one_line(value[:65])",
    ): "of a text that has a 65th character no more than 60 are shown",
    (
        "gatewright/api/checks/errors.py",
        "for error in failure.errors(include_url=False):",
        "for error in failure.errors(include_url=True):",
    ): "no word of ours has pydantic's address of an error",
    (
        "controlplane/snapshot/coalesce.py",
        "self._is_leading = False",
        "self._is_leading = True",
    ): "the first change says what it is before anybody reads it",
    (
        "controlplane/xds/xds_settings.py",
        "if security.certificate is not None and security.key is not None:",
        "if (security.certificate is not None or security.key is not None):",
    ): "one of them alone was refused two lines above",
    (
        "controlplane/xds/protocol/claim.py",
        "return True",
        "return False",
    ): "it is looked at as the answer to a response then, and no response has the nonce of questions",
    (
        "controlplane/xds/trust/certificates.py",
        'self._complaint = ""',
        "self._complaint = 'x'",
    ): "compared with complaints alone, and none reads so",
    (
        "controlplane/answers/verdicts.py",
        "def _joined(reasons: Sequence[str], of: int = 0) -> str:",
        "def _joined(reasons: Sequence[str], of: int = 1) -> str:",
    ): "compared with the number of different reasons, which is 1 or more unless nothing is written",
    (
        "controlplane/xds/trust/admission.py",
        'header = headers[0] if headers else ""',
        "header = headers[0] if headers else 'x'",
    ): "neither begins with the scheme of tokens",
    (
        "dataplane/upstream/h1.py",
        "elif out and (used < 0 or reader.trailers):",
        "elif out and (used < 1 or reader.trailers):",
    ): "octets that come out of a piece were in it, so that some of it were used",
    (
        "dataplane/http/h1/request_head.py",
        "dropped: int = 0",
        "dropped: int = 1",
    ): "of heads that stand for none; one that was read has its own number",
    (
        "dataplane/http/h1/response_head.py",
        "return -1, 0",
        "return -2, 0",
    ): "whoever asks looks at whether it is negative",
    (
        "controlplane/lint/elsewhere.py",
        "FIRST_PORT: Final = 20000",
        "FIRST_PORT: Final = 40000",
    ): "ports of listeners that are in no file: any that no object names, and nothing shows them",
    (
        "dataplane/bootstrap/words.py",
        "value = float(match[1]) * _UNIT[match[2]] if match else -1.0",
        "value = float(match[1]) * _UNIT[match[2]] if match else -2.0",
    ): "any negative number is refused, and no text of the error shows which",
    (
        "controlplane/sources/tree.py",
        "if len(claims.files.get(file, ())) > 1:",
        "if (len(claims.files.get(file, ())) >= 1):",
    ): "the list of the one object that a file has of this key is made anew, and is the same",
    (
        "dataplane/agent/process.py",
        "self._number += 1",
        "self._number += 2",
    ): "the numbers of questions to a worker grow, and differ; that is all that is asked of them",
    (
        "dataplane/agent/troubles.py",
        "break",
        "continue",
    ): "the size has grown beyond the bound and grows on: each row that is left is passed over",
    (
        "dataplane/upstream/balance.py",
        "WARM: Final = -1.0",
        "WARM: Final = -2.0",
    ): "any negative number stands for it",
    (
        "dataplane/upstream/race.py",
        'self._finish(up, "")',
        "self._finish(up, 'x')",
    ): "the cause is looked at where there is no connection, and here is one",
    (
        "dataplane/agent/reports.py",
        "found = await self._journey.workers.dump(int(index) if index.isdecimal() else -1)",
        "found = await self._journey.workers.dump(int(index) if index.isdecimal() else -2)",
    ): "there is no worker of any negative number, and the answer does not name it",
    (
        "dataplane/agent/sockets.py",
        "return [net.listen(place.address, port, shared=False)] * self._workers",
        "return [net.listen(place.address, port, shared=True)] * self._workers",
    ): "only reached where ports cannot be shared, and there nothing looks at it",
    (
        "dataplane/credentials/htpasswd.py",
        'if int(costs.get("cost") or 0) > MAX_BCRYPT_COST or int(costs.get("rounds") or 0) > MAX_ROUNDS:',
        'if int(costs.get("cost") or 1) > MAX_BCRYPT_COST or int(costs.get("rounds") or 0) > MAX_ROUNDS:',
    ): "a hash that names no cost: 1 is not too much either",
    (
        "dataplane/credentials/htpasswd.py",
        'if int(costs.get("cost") or 0) > MAX_BCRYPT_COST or int(costs.get("rounds") or 0) > MAX_ROUNDS:',
        'if int(costs.get("cost") or 0) > MAX_BCRYPT_COST or int(costs.get("rounds") or 1) > MAX_ROUNDS:',
    ): "a hash that names no rounds: 1 is not too many either",
    (
        "dataplane/filters/steps/basic_authentication.py",
        "self._salted = hashlib.blake2b(digest_size=32, key=os.urandom(32))",
        "self._salted = hashlib.blake2b(digest_size=32, key=os.urandom(33))",
    ): "a random key: one byte more changes no answer and can be guessed no better",
    (
        "dataplane/credentials/api_keys.py",
        "self._salted = hashlib.blake2b(digest_size=32, key=os.urandom(32))",
        "self._salted = hashlib.blake2b(digest_size=33, key=os.urandom(32))",
    ): "one byte more of a digest that never leaves the process: it tells the same apart",
    (
        "dataplane/filters/steps/basic_authentication.py",
        "self._salted = hashlib.blake2b(digest_size=32, key=os.urandom(32))",
        "self._salted = hashlib.blake2b(digest_size=33, key=os.urandom(32))",
    ): "one byte more of a digest that never leaves the process: it tells the same apart",
    (
        "dataplane/credentials/api_keys.py",
        "self._salted = hashlib.blake2b(digest_size=32, key=os.urandom(32))",
        "self._salted = hashlib.blake2b(digest_size=32, key=os.urandom(33))",
    ): "a random key: one byte more changes no answer and can be guessed no better",
    (
        "dataplane/credentials/key_sources.py",
        "self._failures = min(self._failures + 1, 10)",
        "self._failures = min(self._failures + 1, 11)",
    ): "from five on the pause is the longest; the bound keeps the power of two a number",
    (
        "dataplane/link/buckets.py",
        'self.digest = int.from_bytes(_digest(key), "little") or 1',
        'self.digest = int.from_bytes(_digest(key), "little") or 2',
    ): "only zero stands for nobody: any other number does for the one key in 2**64 whose digest it is",
    (
        "dataplane/link/buckets.py",
        "return (self.capacity - 1) * self.interval + min(tolerance, self.interval / 2)",
        "return (self.capacity - 1) * self.interval + min(tolerance, self.interval / 3)",
    ): "a tolerance of less than a token, whether half of one or a third: not one more is there",
    (
        "dataplane/link/buckets.py",
        "if full < now:",
        "if (full <= now):",
    ): "at this very moment full: it is set to what it is",
    (
        "dataplane/link/buckets.py",
        "return self._group(key) % self.stripes",
        "return (self._group(key) // self.stripes)",
    ): "which lock guards a group does not matter, as long as it is always the same",
    (
        "dataplane/link/buckets.py",
        'raise AssertionError("no other process takes it")',
        "pass",
    ): "never called: the lock of a process without others is had at once, always",
    (
        "dataplane/link/buckets.py",
        'raise AssertionError("no other process gives it")',
        "pass",
    ): "never called: giving the lock of a process without others never fails",
    (
        "dataplane/http/h2/hpack.py",
        "prefix = 0x3F if octet >= 0x40 else 0x0F",
        "prefix = 0x3F if octet >= 65 else 0x0F",
    ): "of the octet 0x40 either prefix leaves nothing",
    (
        "dataplane/http/h2/hpack.py",
        "prefix = 0x3F if octet >= 0x40 else 0x0F",
        "prefix = 0x3F if (octet > 64) else 0x0F",
    ): "of the octet 0x40 either prefix leaves nothing",
    (
        "dataplane/http/h2/hpack.py",
        "if octet >= 0x80 and length:",
        "if (octet > 128) and length:",
    ): "the octet 0x80 says that the length is 0",
    (
        "dataplane/http/h2/hpack.py",
        "self.changed = False",
        "self.changed = True",
    ): "only read behind a block, which has set it",
    (
        "dataplane/http/h2/receiving.py",
        "self._data_end = False",
        "self._data_end = True",
    ): "only read for a stream of which a part of a frame has come, and then it was set",
    (
        "dataplane/http/h2/rules.py",
        "if authority is None or not (_is_authority if len(authority) <= MAX_AUTHORITY else _AUTHORITY)(authority):",
        "if authority is None or not (_is_authority if (len(authority) < MAX_AUTHORITY) else _AUTHORITY)(authority):",
    ): "whether the answer is remembered or found again, it is the same",
    (
        "dataplane/server/h1/h1_connection.py",
        'self.peer = Peer("")',
        "self.peer = Peer('x')",
    ): "set when the connection is made, before anybody looks",
    (
        "dataplane/server/h1/h1_connection.py",
        "self.progress: tuple[CarriedExchange | None, int] = (None, 0)",
        "self.progress: tuple[CarriedExchange | None, int] = (None, 1)",
    ): "None is no exchange, whatever stands beside it",
    (
        "dataplane/server/h2/h2_connection.py",
        'self.peer = Peer("")',
        "self.peer = Peer('x')",
    ): "set when the connection is made, before anybody looks",
    (
        "dataplane/server/h2/stream.py",
        "self.progress = 0",
        "self.progress = 1",
    ): "compared only from the first look on, which sets it: until then `progress_due` is NEVER",
    (
        "dataplane/upstream/h1.py",
        "self.keep = True",
        "self.keep = False",
    ): "each response says whether its connection stays, before anybody looks",
    (
        "dataplane/upstream/h1.py",
        "self.to_head = False",
        "self.to_head = True",
    ): "each request says so, before anybody looks",
    (
        "dataplane/upstream/h1.py",
        "self.left = 0",
        "self.left = 1",
    ): "each response with a length says how much is left, and no other is asked",
    (
        "dataplane/upstream/h2/shared_connection.py",
        "if known is None or known[0] is not head or known[1] is not end or known[2] is not to_head:",
        "if known is None or known[1] is not head or known[1] is not end or known[2] is not to_head:",
    ): "nothing is ever known then: each head is translated anew, to the same",
    (
        "dataplane/upstream/h2/stream.py",
        "self.consumer.upstream_interim(heads.response_head(head, False, True))",
        "self.consumer.upstream_interim(heads.response_head(head, True, True))",
    ): "an interim head has no content, whether it ends the stream or not",
    (
        "dataplane/upstream/lease.py",
        "holder.lease += 1",
        "holder.lease -= 1",
    ): "leases have different numbers; that is all that is asked of them",
    (
        "dataplane/upstream/lease.py",
        "holder.lease += 1",
        "holder.lease += 2",
    ): "leases have different numbers; that is all that is asked of them",
    (
        "dataplane/upstream/sink.py",
        'method = target = upgrade = b""',
        "method = target = upgrade = b'x'",
    ): "a sink never sends a request: nobody reads what it would ask for",
    (
        "dataplane/upstream/sink.py",
        "length = 0",
        "length = 1",
    ): "a sink never sends a request: nobody reads what it would ask for",
    (
        "dataplane/upstream/sink.py",
        "takes_trailers = False",
        "takes_trailers = True",
    ): "a sink never sends a request: nobody reads what it would ask for",
    (
        "dataplane/net/tcp.py",
        "with _bound(ANY_IPV6, 0, shared=False):",
        "with _bound(ANY_IPV6, 0, shared=True):",
    ): "a port that the system chooses and that is given back at once: sharing it is no question",
    (
        "dataplane/table/intern.py",
        'own = [Attached(each.row.name, Level.INLINE, "", False, each) for each in inline]',
        "own = [Attached(each.row.name, Level.INLINE, 'x', False, each) for each in inline]",
    ): "orders are compared within a level, and those of this one stay equal",
    (
        "dataplane/table/router.py",
        'dot = host.find(b".", dot + 1)',
        'dot = host.find(b".", dot + 2)',
    ): "no label of a host is empty: after a dot comes something else",
    (
        "dataplane/table/router.py",
        'end = path.rfind(b"/", 0, end)',
        'end = path.rfind(b"/", 1, end)',
    ): "the slash that a path begins with ends the search like none at all",
    (
        "dataplane/table/router.py",
        "self.longest = 0",
        "self.longest = 1",
    ): "a prefix that is not the root has two octets or more",
    (
        "dataplane/table/policies.py",
        'raise Refused("a policy that this proxy does not know")',
        "pass",
    ): "never called: what nobody knows is not built, it refuses",
    (
        "dataplane/filters/steps/ext_auth/cache.py",
        "return blake2b(data, digest_size=32).digest()",
        "return blake2b(data, digest_size=33).digest()",
    ): "one byte more of a digest that never leaves the process: it tells the same apart",
    (
        "dataplane/filters/steps/header_modifiers.py",
        "silent=True,",
        "silent=False,",
    ): "a hint for speed: whatever these hooks answer is looked at, and it is nothing",
    (
        "dataplane/telemetry/lines.py",
        "self._given = self._gone = 0  # bytes; the first is written by callers of `put`, the second by the thread",
        "self._given = self._gone = 1  # bytes; the first is written by callers of `put`, the second by the thread",
    ): "only the difference of the two is ever looked at",
    (
        "controlplane/cli/serving/lines.py",
        "self._given = self._gone = 0  # bytes; the first is written by the callers of `put`, the second by the thread",
        "self._given = self._gone = 1  # bytes; the first is written by the callers of `put`, the second by the thread",
    ): "only the difference of the two is ever looked at",
    (
        "controlplane/cli/local/processes.py",
        "started: float = 0.0",
        "started: float = 1.0",
    ): "set when its child is started, before anybody looks",
    (
        "controlplane/cli/local/processes.py",
        "due: float = 0.0",
        "due: float = 1.0",
    ): "the loop's clock is past either",
    (
        "controlplane/cli/local/up.py",
        "if time.monotonic() > end:",
        "if (time.monotonic() >= end):",
    ): "which of two moments a nanosecond apart is the last",
    (
        "controlplane/sources/directory.py",
        "self._slice_end = 0.0",
        "self._slice_end = 1.0",
    ): "set when the work begins, before anybody looks",
    (
        "controlplane/sources/file_state.py",
        "with_problems: int = 0",
        "with_problems: int = 1",
    ): "it spares a look at the pieces of a file; one that is looked at in vain has no problems to show",
    (
        "controlplane/cli/children.py",
        "CHUNK = 65536",
        "CHUNK = 131072",
    ): "however much is read at once, whole lines are written",
    (
        "controlplane/answers/proxies.py",
        "break",
        "continue",
    ): "when all that are wanted are found, each proxy that is left is passed over without a look",
    (
        "dataplane/proxy/request/request_body.py",
        "x.buffer = buffer_of(x, None if length < 0 else length)",
        "x.buffer = buffer_of(x, None if (length <= 0) else length)",
    ): "an announced length is only compared with limits, and 0 is above none",
    (
        "dataplane/proxy/attempt/replay.py",
        "expected: int = -1,",
        "expected: int = -2,",
    ): "no limit is below any negative number",
    (
        "dataplane/proxy/attempt/replay.py",
        "if len(self.pieces) > 1:",
        "if (len(self.pieces) >= 1):",
    ): "a single piece joined is itself",
    (
        "gatewright/cel/plan.py",
        "node.col_offset = node.end_col_offset = 0",
        "node.col_offset = node.end_col_offset = 1",
    ): "a node's line is its place in the expression; nothing reads its column",
    (
        "controlplane/translate/backend/backend_tls.py",
        'UNKNOWN: Final = ObjectKey("", "")',
        "UNKNOWN: Final = ObjectKey(\"\", 'x')",
    ): "it stands for a policy that nobody finds, and is compared with itself alone: no object is in no namespace",
    (
        "dataplane/http/h2/rules.py",
        'status = found.get(b":status", b"")',
        "status = found.get(b\":status\", b'x')",
    ): "neither is a status",
    (
        "dataplane/http/h2/sending.py",
        "and size <= self._send_window",
        "and (size < self._send_window)",
    ): "content that fills the window goes by way of the queue then, in the same call and frame",
    (
        "gatewright/api/generate/schema_nodes.py",
        'return "string" if isinstance(values[0], str) else "integer"',
        'return "string" if isinstance(values[1], str) else "integer"',
    ): "a choice has values of one type, and at least two",
    (
        "dataplane/fork_server.py",
        "continue",
        "break",
    ): "what else was ready is so at the next question to the kernel as well",
    (
        "gatewright/cel/plan.py",
        "self.line = 1",
        "self.line = 2",
    ): "whoever emits a node of the expression sets its line before; only the `return` at the end has this one",
    (
        "gatewright/files.py",
        "_CHUNK: Final = 64 * 1024",
        "_CHUNK: Final = (64 + 1024)",
    ): "the size of pieces in which a file is read whose size is not known; whatever it is, they are joined",
    (
        "gatewright/cel/operators.py",
        "return math.copysign(math.inf, left) * math.copysign(1.0, right)",
        "return math.copysign(math.inf, left) * math.copysign(2.0, right)",
    ): "twice infinity is infinity: only the sign of the second factor counts",
    (
        "gatewright/cel/functions/conversions.py",
        "if not MIN_INT < value < MAX_INT:",
        "if not (MIN_INT < value <= MAX_INT):",
    ): "no double is 2**63 - 1, the next ones are 2**63 and 2**63 - 1024",
    (
        "dataplane/credentials/json_object.py",
        "value = int(text) if len(text) < 24 else float(text)",
        "value = int(text) if (len(text) <= 24) else float(text)",
    ): "an integer of 24 characters is no number of 64 bits: it becomes the double next to it either way",
    (
        "gatewright/cel/functions/encoders.py",
        'raise Fault(f"form.encode: expected a map, found {type_name(value)}")',
        "pass",
    ): "for what is neither a string nor a map there is no overload, and the function is not called",
    (
        "dataplane/upstream/h1.py",
        "elif out and (used < 0 or reader.trailers):",
        "elif out and ((used <= 0) or reader.trailers):",
    ): "a body in chunks ends with a byte of what came: nought of it are never its own",
    (
        "controlplane/translate/policy/policies.py",
        '(Setting(phase, message.WhichOneof("field") or ""), message.SerializeToString(deterministic=True))',
        "(Setting(phase, message.WhichOneof(\"field\") or 'x'), message.SerializeToString(deterministic=True))",
    ): "each message is made for one field, which is set in it: the other word is for the types alone",
    (
        "controlplane/cli/offline/cel.py",
        "if level > json_text.MAX_LEVELS:  # refused as JSON",
        "if (level >= json_text.MAX_LEVELS):  # refused as JSON",
    ): "numbers are looked at before, and of a list or map at that level the items are what JSON refuses",
    (
        "controlplane/xds/trust/authority.py",
        'found = tuple(x509.load_pem_x509_certificates(data.get(BUNDLE, b"")))',
        "found = tuple(x509.load_pem_x509_certificates(data.get(BUNDLE, b'x')))",
    ): "neither is a certificate",
    (
        "controlplane/xds/trust/authority.py",
        'found = serialization.load_pem_private_key(data.get(entry, b""), None)',
        "found = serialization.load_pem_private_key(data.get(entry, b'x'), None)",
    ): "neither is a key",
    (
        "controlplane/xds/trust/certificates.py",
        'self._seen, self._complaint = seen, ""',
        "self._seen, self._complaint = seen, 'x'",
    ): "neither is the text of a trouble",
    (
        "controlplane/xds/protocol/delta.py",
        "parts = (self.step(snapshot, entries[type_url], 0) for type_url in types)",
        "parts = (self.step(snapshot, entries[type_url], 1) for type_url in types)",
    ): "the number is for subscriptions that differ from others; these are for all streams",
    (
        "controlplane/answers/nacks.py",
        'digest = blake2b(message.encode("utf-8", "surrogatepass"), digest_size=16).digest()',
        'digest = blake2b(message.encode("utf-8", "surrogatepass"), digest_size=17).digest()',
    ): "a digest of another length is as different for other texts",
    (
        "controlplane/xds/permits.py",
        "self._asked = 0",
        "self._asked = 1",
    ): "places in the line are compared, not shown",
    (
        "controlplane/xds/permits.py",
        "self._asked += 1",
        "self._asked += 2",
    ): "places in the line are compared, not shown",
    (
        "gatewright/cel/functions/mathematics.py",
        "if _shift(count) > 63:",
        "if _shift(count) > 64:",
    ): "a shift by 64 leaves none of the 64 bits",
    (
        "gatewright/cel/functions/mathematics.py",
        "return Uint((int(value) << count) & MAX_UINT if _shift(count) < 64 else 0)",
        "return Uint((int(value) << count) & MAX_UINT if _shift(count) < 65 else 0)",
    ): "a shift by 64 leaves none of the 64 bits",
    (
        "gatewright/cel/functions/mathematics.py",
        "return Uint((int(value) << count) & MAX_UINT if _shift(count) < 64 else 0)",
        "return Uint((int(value) << count) & MAX_UINT if (_shift(count) <= 64) else 0)",
    ): "a shift by 64 leaves none of the 64 bits",
    (
        "gatewright/api/decode/newer.py",
        'paths = [tuple(each["loc"]) for each in failure.errors(include_url=False) if each["type"] in _UNKNOWN]',
        'paths = [tuple(each["loc"]) for each in failure.errors(include_url=True) if each["type"] in _UNKNOWN]',
    ): "no more than place and type of an error are looked at",
    (
        "gatewright/api/text/yaml_text.py",
        "self._weight = 0",
        "self._weight = 1",
    ): "the weight of a value is the difference of two of them",
    (
        "gatewright/api/standalone/imported/mcp_clients.py",
        '_look(each, arguments[index - 1] if index else "", f"args[{index}]")',
        "_look(each, arguments[index - 1] if index else 'x', f\"args[{index}]\")",
    ): "neither begins with the - of an option",
    (
        "gatewright/api/standalone/imported/mcp_clients.py",
        'loaded = standalone.load(json.dumps(_file([target], port)), "")',
        "loaded = standalone.load(json.dumps(_file([target], port)), 'x')",
    ): "of a problem its path and its words are taken, not the name of the file",
    (
        "gatewright/api/standalone/resources.py",
        'return policy.WhichOneof("field") or ""',
        "return policy.WhichOneof(\"field\") or 'x'",
    ): "each policy that is made has its field",
    (
        "gatewright/api/schema/near_names.py",
        "nearest = difflib.get_close_matches(folded, by_folded, n=1, cutoff=likeness)",
        "nearest = difflib.get_close_matches(folded, by_folded, n=2, cutoff=likeness)",
    ): "the nearest comes first, and no other is looked at",
    (
        "gatewright/api/text/places.py",
        'content = _CONTENT.search(text or "")',
        "content = _CONTENT.search(text or 'x')",
    ): "the one character would stand in the first line",
    (
        "gatewright/cel/operators.py",
        "return -result if left < 0 else result",
        "return -result if left < 1 else result",
    ): "the rest of zero is zero",
    (
        "gatewright/cel/operators.py",
        "return -result if left < 0 else result",
        "return -result if (left <= 0) else result",
    ): "the rest of zero is zero",
    (
        "gatewright/cel/functions/json_text.py",
        "value = int(text) if len(text) < 400 else None",
        "value = int(text) if (len(text) <= 400) else None",
    ): "a number of 400 digits is a double either way",
    (
        "gatewright/cel/functions/json_text.py",
        "value = int(text) if len(text) < 400 else None",
        "value = int(text) if len(text) < 800 else None",
    ): "a number of 400 digits is a double either way",
    (
        "gatewright/cel/functions/conversions.py",
        "if not 0 <= value < MAX_UINT:",
        "if not (0 <= value <= MAX_UINT):",
    ): "no double is the largest uint itself",
    (
        "gatewright/cel/functions/strings.py",
        "pieces = text.count(separator) + 1 if limit < 0 else min(text.count(separator) + 1, limit)",
        "pieces = text.count(separator) + 1 if limit < 1 else min(text.count(separator) + 1, limit)",
    ): "whoever asks for none has his answer before",
    (
        "gatewright/cel/functions/strings.py",
        "pieces = text.count(separator) + 1 if limit < 0 else min(text.count(separator) + 1, limit)",
        "pieces = text.count(separator) + 1 if (limit <= 0) else min(text.count(separator) + 1, limit)",
    ): "whoever asks for none has his answer before",
    (
        "gatewright/cel/names.py",
        "nearest = get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)",
        "nearest = get_close_matches(word.casefold(), by_folded, n=2, cutoff=0.6)",
    ): "the nearest comes first, and no other is looked at",
    (
        "gatewright/cel/functions/strings.py",
        "return split_some(budget, text, separator, -1)",
        "return split_some(budget, text, separator, -2)",
    ): "each negative number means all",
    (
        "dataplane/filters/steps/cors.py",
        "return NOT_ALLOWED, False",
        "return NOT_ALLOWED, True",
    ): "whether an origin is named is asked only where it is allowed",
    (
        "dataplane/filters/steps/cors.py",
        "lines, is_named = lines_for(origin) if len(origin) <= MAX_ORIGIN else (NOT_ALLOWED, False)",
        "lines, is_named = lines_for(origin) if len(origin) <= MAX_ORIGIN else (NOT_ALLOWED, True)",
    ): "whether an origin is named is asked only where it is allowed",
    (
        "dataplane/proxy/attempt/mirrors.py",
        'self.blocks = [b"" if backend is None else outgoing.copied_lines(x, backend) for backend in backends]',
        "self.blocks = [b'x' if backend is None else outgoing.copied_lines(x, backend) for backend in backends]",
    ): "nothing is sent to a backend that is not there",
    (
        "dataplane/proxy/attempt/mirrors.py",
        'self.upstream_content(b"", True)',
        "self.upstream_content(b'x', True)",
    ): "the answer has ended: how much of it was read is not asked any more",
    (
        "dataplane/proxy/layers/grpc_web.py",
        'value = head.get(b"content-type") or b""',
        "value = head.get(b\"content-type\") or b'x'",
    ): "only what stands behind a plus sign is taken of it",
    (
        "dataplane/proxy/layers/grpc_web.py",
        'value = made.get(b"content-type") or b""',
        "value = made.get(b\"content-type\") or b'x'",
    ): "neither is a type of gRPC, and of any other nothing is taken",
    (
        "controlplane/lint/world.py",
        "self._program = Program(lambda: 0.0)",
        "self._program = Program(lambda: 1.0)",
    ): "no moment is in what lint says",
    (
        "controlplane/deploy/merge.py",
        "before = mine is not None and theirs is not None and mine < theirs",
        "before = mine is not None and theirs is not None and (mine <= theirs)",
    ): "an item that is written and one that is not have different keys, so they never have one place",
    (
        "controlplane/kube/reading/events.py",
        "return False",
        "return True",
    ): "what is not nested too deeply is the same when `shallow` has looked at it",
    (
        "controlplane/kube/writing/schedule.py",
        "longest = min(FIRST_WAIT * 2.0 ** min(entry.failures, 10), LONGEST_WAIT)",
        "longest = min(FIRST_WAIT * 2.0 ** min(entry.failures, 11), LONGEST_WAIT)",
    ): "the longest wait is reached after eight doublings; the number only keeps the power from getting too large",
    (
        "dataplane/net/proxy_header.py",
        'end = data.find(b"\\n", 0, MAX_LINE)',
        'end = data.find(b"\\n", 1, MAX_LINE)',
    ): "what is read begins with the letters of its signature",
    (
        "dataplane/net/turns.py",
        "self.number = 0",
        "self.number = 1",
    ): "numbers of turns are compared for being the same, and none is before the first",
    (
        "dataplane/net/turns.py",
        "self.number += 1",
        "self.number += 2",
    ): "it changes with each turn, and that is all that is asked of it",
    (
        "dataplane/net/turns.py",
        "self._over = -1",
        "self._over = -2",
    ): "no turn has either number",
    (
        "dataplane/net/crowd.py",
        "if found is not None or left <= 0:",
        "if found is not None or (left < 0):",
    ): "where nothing is left to look at, nothing is found in the smaller ones either",
    (
        "dataplane/upstream/race.py",
        "return 0 if self._race.is_on else -1",
        "return 1 if self._race.is_on else -1",
    ): "the number is compared with itself, of an earlier moment",
    (
        "dataplane/upstream/race.py",
        "return 0 if self._race.is_on else -1",
        "return 0 if self._race.is_on else -2",
    ): "another number than before is all that it says",
    (
        "dataplane/link/buckets.py",
        'return _sign(self.lock(self.stripe(key)), Entry(self, self._group(key), f"{key}|sign", Rate(1.0, 1)))',
        'return _sign(self.lock(self.stripe(key)), Entry(self, self._group(key), f"{key}|sign", Rate(2.0, 1)))',
    ): "a sign asks for no token: no number of its rate is read",
    (
        "dataplane/link/buckets.py",
        'return _sign(self.lock(self.stripe(key)), Entry(self, self._group(key), f"{key}|sign", Rate(1.0, 1)))',
        'return _sign(self.lock(self.stripe(key)), Entry(self, self._group(key), f"{key}|sign", Rate(1.0, 2)))',
    ): "a sign asks for no token: no number of its rate is read",
    (
        "dataplane/link/buckets.py",
        "entry.fulls[at] = (full if full > now else now) + entry.cost",
        "entry.fulls[at] = (full if (full >= now) else now) + entry.cost",
    ): "where both are the same, either is",
    (
        "dataplane/link/keyed.py",
        "if full < now:",
        "if (full <= now):",
    ): "where both are the same, the one takes the place of the other, and there is a token either way",
    (
        "dataplane/link/keyed.py",
        "taken = [locks[number] for number in (sorted(numbers) if len(numbers) > 1 else numbers)]",
        "taken = [locks[number] for number in (sorted(numbers) if (len(numbers) >= 1) else numbers)]",
    ): "one number is in order",
    (
        "dataplane/link/tables.py",
        "self._turn_to(0)",
        "self._turn_to(1)",
    ): "whose it is, is asked before each use: where it is not this one's, its own is looked for",
    (
        "dataplane/http/h2/frames.py",
        "WHOLE = END_HEADERS | END_STREAM",
        "WHOLE = (END_HEADERS & END_STREAM)",
    ): "no frame of headers takes the quick way then, and the other one reads the same of it",
}
"""By (file, line, line with the fault): the reason."""
