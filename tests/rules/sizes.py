"""Files, folders and functions of the product that are longer than usual: how long, and why they stay whole.

`test_sizes` compares: what is not here keeps the limits, what is here grows by a tenth at most. A row whose thing has
become short again is deleted.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Row(NamedTuple):
    """How large it is, and why."""

    size: int
    reason: str


FILES: Final[dict[str, Row]] = {
    "controlplane/answers/fleet.py": Row(
        261, "one class: every question about proxies is a look at the same two indexes, kept in step here"
    ),
    "controlplane/app.py": Row(
        285, "the composition root of the controller: parts are made, begun, ended and joined in one order"
    ),
    "controlplane/cli/command_options.py": Row(308, "a table in the form of functions: one for each command"),
    "controlplane/cli/local/demo_llm.py": Row(
        266, "a demo server in one file, as every demo server is: four APIs of two providers, each a few lines"
    ),
    "controlplane/cli/parser.py": Row(269, "a table: one row for each command, most of which is its help"),
    "controlplane/derive/collection.py": Row(
        280, "four kinds of nodes of one graph that call each other's hooks; apart they would import in a circle"
    ),
    "controlplane/kube/access.py": Row(
        273, "the one file that may know the client library: all of its calls and errors are translated here"
    ),
    "controlplane/kube/cluster.py": Row(
        343, "the composition of a cluster's side: what starts, in which order it stops, who hears what"
    ),
    "controlplane/kube/reading/needed.py": Row(
        275, "a table: one struct for each kind of Kubernetes, with the fields that are read"
    ),
    "controlplane/kube/reading/reflector.py": Row(
        280, "one state machine: list, watch, list again; a third is what each answer of an API server means for it"
    ),
    "controlplane/kube/writing/deployer.py": Row(
        327, "one loop over three queues that share the state of each Gateway"
    ),
    "controlplane/pipeline.py": Row(
        298, "one class: the seam of source, program and snapshots, with one method for each direction"
    ),
    "controlplane/sources/directory.py": Row(
        336, "one shell around pure parts: a folder's reads, watches and turns, all on the state of one folder"
    ),
    "controlplane/translate/backend/backend_tls.py": Row(
        278, "one policy of Gateway API: which of several counts, and why, is one list of rules"
    ),
    "controlplane/translate/backend/backends.py": Row(
        273, "one question, what a reference leads to, with a short function for each kind of answer"
    ),
    "controlplane/translate/collections/statuses.py": Row(
        272, "a table in the form of classes: one for each kind of object that has a status"
    ),
    "controlplane/translate/gateway/attachment.py": Row(
        254, "one rule, who takes a route, as values that are equal as long as the answer is"
    ),
    "controlplane/translate/gateway/listeners.py": Row(
        251, "one plan of listeners, a short function for each condition"
    ),
    "controlplane/translate/policy/policy_targets.py": Row(
        252, "a table in the form of functions: one for each kind of target, and the places above it"
    ),
    "controlplane/translate/status/gateway_status.py": Row(251, "statuses of three kinds that show the same listeners"),
    "controlplane/xds/protocol/stream.py": Row(
        364, "one state machine: every event of a stream meets the same subscriptions and the one flight"
    ),
    "controlplane/xds/server.py": Row(
        337, "the composition of a gRPC server: its listeners, streams and counters, begun and ended here"
    ),
    "controlplane/xds/session.py": Row(259, "one loop of one call: each wait is woken by what the others do"),
    "dataplane/agent/process.py": Row(
        251, "one life in one class: started, talked to, seen to end, each with its deadline"
    ),
    "dataplane/agent/workers.py": Row(
        435, "one state machine over all slots: a hand-over touches old and new workers at once"
    ),
    "dataplane/backends/llm/guarded_answers.py": Row(
        271, "one class: whole answers and streams are held by the same rules until a guard has judged"
    ),
    "dataplane/backends/llm/reading.py": Row(
        338, "one carrier: the callbacks of one answer, in the order in which they come"
    ),
    "dataplane/backends/llm/realtime/call.py": Row(
        275, "one carrier: opening and both directions share the state that decides who may still fail over"
    ),
    "dataplane/backends/llm/serving.py": Row(305, "a list of the steps of one request, a short function for each"),
    "dataplane/backends/llm/trying.py": Row(
        253, "one state machine: which candidate is next depends on all that became of those before"
    ),
    "dataplane/backends/mcp/processing.py": Row(
        252, "both directions of one rule, a short function for each kind of message"
    ),
    "dataplane/backends/mcp/legacy/holder.py": Row(
        287, "one class: the held streams, and the socket by which others reach them, live and end together"
    ),
    "dataplane/backends/mcp/legacy/requests.py": Row(
        310, "one protocol's way of being asked, a short function for each step"
    ),
    "dataplane/backends/mcp/posts.py": Row(
        297, "a table in the form of functions: one for each kind of message of a client"
    ),
    "dataplane/backends/mcp/relay.py": Row(286, "one subject, a short function for each form in which an answer comes"),
    "dataplane/backends/mcp/upstreams.py": Row(
        316, "one class: found, renewed and opened sessions go into the one id that the client gets"
    ),
    "dataplane/backends/mcp/visit.py": Row(267, "one value of one request, with what every method asks of it"),
    "dataplane/backends/terminating/terminator.py": Row(
        496, "one carrier: the callbacks of both sides of one exchange on one state"
    ),
    "dataplane/carriers.py": Row(252, "a contract: mostly the words of what a carrier may do and when"),
    "dataplane/chain/ext_proc/content.py": Row(437, "a table in the form of classes: one for each mode of content"),
    "dataplane/chain/ext_proc/session.py": Row(
        325, "one state machine: one call, in which answers decide what may be sent next"
    ),
    "dataplane/chain/filter.py": Row(274, "a contract: what a policy becomes, mostly words"),
    "dataplane/credentials/locations.py": Row(
        286, "one subject, a short function for each place where a credential can stand"
    ),
    "dataplane/credentials/mcp_discovery.py": Row(
        269, "one class: three documents of one specification, made of the same settings"
    ),
    "dataplane/exchange.py": Row(
        393, "one value: a field of an exchange is a line, with the words of who writes it and when"
    ),
    "dataplane/filters/registry.py": Row(317, "a table: one row for each policy, with the reason of its place"),
    "dataplane/filters/steps/cors.py": Row(
        263, "one policy: what is allowed, preflights and answers are read against the Fetch standard side by side"
    ),
    "dataplane/filters/steps/rate_limit/local.py": Row(
        297, "one policy: its builder and hooks share the meters that they close over"
    ),
    "dataplane/http/h1/request_head.py": Row(
        334, "one pass over a header block: what a line means depends on those before, on the hottest path"
    ),
    "dataplane/http/h2/events.py": Row(300, "a table in the form of classes: one for each event"),
    "dataplane/http/h2/incoming_heads.py": Row(287, "one state machine: a block between its first frame and its last"),
    "dataplane/http/h2/receiving.py": Row(
        343, "one state machine: each frame is judged against the state of one connection"
    ),
    "dataplane/http/h2/rules.py": Row(300, "one section of RFC 9113, rule by rule, on the hot path"),
    "dataplane/link/buckets.py": Row(
        329, "one data structure in shared memory: its layout, its lock and its arithmetic are judged together"
    ),
    "dataplane/llm/body.py": Row(291, "one reader: spans of a JSON text, found and changed without decoding the rest"),
    "dataplane/llm/chat.py": Row(326, "a vocabulary: one small class for each part of a conversation"),
    "dataplane/llm/formats/completions/request.py": Row(
        394, "one format in both directions, so that a field is read and written side by side"
    ),
    "dataplane/llm/losses.py": Row(258, "a table: one row for each thing that a format cannot say"),
    "dataplane/llm/providers.py": Row(263, "a table: one row for each provider, and the few functions that rows name"),
    "dataplane/llm/usage.py": Row(292, "a table in the form of functions: one for each form of usage"),
    "dataplane/mcp/messages.py": Row(
        311, "one strict reader: the envelope's fields and their bounds, a short function for each"
    ),
    "dataplane/proxy/attempt/attempts.py": Row(
        302, "one state machine in the form of functions: what happens when an attempt fails"
    ),
    "dataplane/proxy/context.py": Row(
        353, "the capabilities of a worker's exchanges: one field for each, with its words"
    ),
    "dataplane/proxy/request/request_body.py": Row(
        269, "one state machine in the form of functions: content of a request under back-pressure"
    ),
    "dataplane/proxy/steps/response_stages.py": Row(
        260, "two sources of one row of stages, which differ in who is paused"
    ),
    "dataplane/proxy/steps/stages.py": Row(
        332, "one contract's other side: a place and the row that it is in call each other at every step"
    ),
    "dataplane/proxy/steps/waiting.py": Row(297, "one state machine: a step that waits, whatever its kind"),
    "dataplane/server/h1/h1_connection.py": Row(
        536, "one state machine of callbacks on the hottest path: calls between parts would cost each request"
    ),
    "dataplane/server/h2/h2_connection.py": Row(
        465, "one state machine: what all streams of a connection share, windows and ends above all"
    ),
    "dataplane/server/h2/stream.py": Row(389, "one carrier: the callbacks of one stream, and what waits of it"),
    "dataplane/server/raw/datagrams.py": Row(
        386, "a socket and its sessions, which hold each other: bounds count over both"
    ),
    "dataplane/server/raw/raw_connection.py": Row(
        288, "one state machine: two directions with back-pressure and half-closes of both"
    ),
    "dataplane/serving.py": Row(485, "the composition root of the request path"),
    "dataplane/stdio/sessions.py": Row(291, "one pool: a session's life and the count of all are one invariant"),
    "dataplane/table/applier.py": Row(267, "one class: a change in slices, whose order is the invariant"),
    "dataplane/table/compile.py": Row(327, "a table in the form of functions: one for each kind of message"),
    "dataplane/table/intern.py": Row(
        355, "one class: equal settings are one object, over all levels that share the tables of digests"
    ),
    "dataplane/table/plans.py": Row(451, "a vocabulary: the plans that a request meets, mostly fields and their words"),
    "dataplane/table/policies.py": Row(323, "one subject, a short function for each change and each place of a policy"),
    "dataplane/table/store.py": Row(
        326, "a vocabulary: one record for each kind of resource, and the two indexes over them"
    ),
    "dataplane/telemetry/access_log.py": Row(272, "one class: a line is planned and written with the same fields"),
    "dataplane/telemetry/metric_table.py": Row(266, "a table: one row for each metric"),
    "dataplane/telemetry/requests.py": Row(340, "one recorder: a method for each thing that is counted"),
    "dataplane/tls/contexts.py": Row(
        306, "settings of both sides of OpenSSL, kept side by side so that one is not safer than the other"
    ),
    "dataplane/tls/transport.py": Row(472, "one state machine between two interfaces of asyncio that must be whole"),
    "dataplane/upstream/auth/aws.py": Row(275, "one provider's sources of keys, a short function for each"),
    "dataplane/upstream/calls/call.py": Row(
        274, "one carrier: the callbacks of one call, whichever way its answer is taken"
    ),
    "dataplane/upstream/calls/sending.py": Row(
        353, "one state machine: what calls and mirrors have in common, from begin to loss"
    ),
    "dataplane/upstream/calls/stepped.py": Row(
        374, "steps around one call: what is sent and what is answered share the view that hooks see"
    ),
    "dataplane/upstream/connector.py": Row(
        353, "one class: connections that are opened, idle and closed are counted once"
    ),
    "dataplane/upstream/dial/tunnel.py": Row(276, "one state machine: a tunnel from its dial to its last byte"),
    "dataplane/upstream/endpoint.py": Row(
        280, "a vocabulary of one address: leases, pools and limits that call each other"
    ),
    "dataplane/upstream/gate.py": Row(
        478, "one state machine: who waits and how many connections there are is one invariant"
    ),
    "dataplane/upstream/h1.py": Row(468, "one state machine of callbacks on the hottest path"),
    "dataplane/upstream/h2/shared_connection.py": Row(430, "one state machine: what all streams to an endpoint share"),
    "dataplane/upstream/h2/stream.py": Row(299, "one carrier: the callbacks of one stream"),
    "dataplane/upstream/health.py": Row(307, "one model of health: what is seen, who is judged, who returns"),
    "dataplane/upstream/lease.py": Row(338, "the one place that chooses, borrows, counts and gives back"),
    "dataplane/upstream/outgoing.py": Row(255, "the one place that makes header lines: plans, edits and their finish"),
    "dataplane/upstream/settings.py": Row(
        326, "a vocabulary: one small class for each policy of a backend, and how they are finished"
    ),
    "dataplane/upstream/shared.py": Row(
        332, "one pool: connections and those who wait for streams of them are one invariant"
    ),
    "gatewright/api/advice/advice.py": Row(281, "a table in the form of functions: one for each piece of advice"),
    "gatewright/api/decode/documents.py": Row(
        347,
        "one walk from text to verdicts: any step may end it, and then says what can be read all the same",
    ),
    "gatewright/api/generate/shapes.py": Row(
        266, "a vocabulary: one small class for each shape, and the one reader of annotations"
    ),
    "gatewright/api/lower/lowering.py": Row(
        374, "a table: one row for each field that is no plain copy, with the small readers that rows name"
    ),
    "gatewright/api/lower/to_wire.py": Row(
        282, "one function for each place where settings stand: rules, requests, backends, connections"
    ),
    "gatewright/api/routes/http_filters.py": Row(
        291, "models: one class for each filter of Gateway API, field by field"
    ),
    "gatewright/api/routes/http_route.py": Row(258, "models: one kind of Gateway API, field by field"),
    "gatewright/api/schema/rules.py": Row(307, "a vocabulary: one small class for each form of rule"),
    "gatewright/api/standalone/file.py": Row(376, "models: the shape of the standalone file, part by part"),
    "gatewright/api/standalone/imported/litellm.py": Row(
        345, "one walk over one foreign file, a short method for each part of it"
    ),
    "gatewright/api/standalone/imported/mcp_clients.py": Row(
        272, "one walk over one foreign file, a short function for each part of it"
    ),
    "gatewright/api/standalone/parts.py": Row(
        264, "models: one small class for each part that the file writes in another way"
    ),
    "gatewright/api/standalone/resources.py": Row(353, "one walk over one file, a short method for each part of it"),
    "gatewright/api/text/yaml_text.py": Row(
        324, "one reading of YAML: values and positions come of the same events and bounds"
    ),
    "gatewright/attach/policies.py": Row(437, "a table: one row for each policy"),
    "gatewright/cel/emit_loops.py": Row(256, "a table in the form of functions: one for each macro"),
    "gatewright/cel/emit_operators.py": Row(288, "a table in the form of functions: one for each operator"),
    "gatewright/cel/functions/network.py": Row(
        269, "a library of the language: one function for each of its names, and the table of them"
    ),
    "gatewright/cel/parser.py": Row(308, "one grammar: a method for each of its rules"),
    "gatewright/cel/plan.py": Row(335, "one visitor: a method for each kind of node"),
}
"""Path to lines, of files with more than 250."""

FOLDERS: Final[dict[str, Row]] = {
    "dataplane/agent": Row(31, "a process: a file for each thing that it watches or starts"),
    "dataplane/backends/llm": Row(25, "a file for each step of a request to models"),
    "dataplane/backends/mcp": Row(25, "a file for each method or step of a request to MCP servers"),
    "dataplane/chain": Row(23, "what filters are given, a file for each capability"),
    "dataplane/credentials": Row(19, "a file for each form of credential, and for each place where keys come from"),
    "dataplane/filters/settings": Row(16, "a file for each policy's settings"),
    "dataplane/filters/steps": Row(17, "a file for each policy on the request path"),
    "dataplane/guards": Row(17, "a file for each form of guard"),
    "dataplane/http": Row(24, "a file for each rule of HTTP that both versions have; the codecs have folders"),
    "dataplane/http/h2": Row(18, "one codec: a file for each part of a connection"),
    "dataplane/link": Row(23, "what agent and workers have in common: a file for each message or table"),
    "dataplane/llm": Row(
        39, "pure parts: a file for each thing that APIs of models have in common; formats have folders"
    ),
    "dataplane/mcp": Row(30, "pure parts: a file for each thing of the specification"),
    "dataplane/table": Row(32, "pure parts between a state and what a request meets, a file for each kind of resource"),
    "dataplane/telemetry": Row(28, "a file for each thing that is counted, logged or exported"),
    "dataplane/upstream": Row(31, "the way to an endpoint, a file for each of its steps; protocols have folders"),
    "gatewright/api/objects": Row(18, "a file for each kind of object"),
    "gatewright/api/schema": Row(19, "a vocabulary: a file for each form of a value or rule"),
    "gatewright/api/traffic": Row(22, "a file for each policy of `traffic`"),
    "gatewright/cel": Row(39, "a language: reading, checking and emitting, a file for each group of its constructs"),
    "gatewright/cel/functions": Row(18, "a library of a language: a file for each of its parts"),
}
"""Path to files directly within, of folders with more than 15; empty ones and generated ones do not count."""

FUNCTIONS: Final[dict[str, Row]] = {
    "controlplane/admin/server.py:application": Row(49, "a table of paths"),
    "controlplane/app.py:App.__init__": Row(55, "a list of parts in the order in which they need each other"),
    "controlplane/translate/collections/inputs.py:Inputs.__init__": Row(
        47, "a list of sources: one for each kind of object"
    ),
    "controlplane/translate/graph.py:Collections.__init__": Row(
        56, "the table of contents of the graph, in reading order"
    ),
    "dataplane/chain/rules.py:decision": Row(44, "closures: one for each form of a decision, chosen once"),
    "dataplane/filters/steps/rate_limit/local.py:_keyed": Row(
        55, "a closure: the hook and the meters that it closes over"
    ),
    "dataplane/http/h1/request_head.py:read": Row(
        62, "the hottest path: a call for each part of a head would cost each request"
    ),
    "dataplane/http/h1/response_head.py:read": Row(
        47, "the hottest path: a call for each part of a head would cost each answer"
    ),
    "dataplane/http/h2/receiving.py:Receiving._frames": Row(41, "the hot loop over frames"),
    "dataplane/proxy/request/entry.py:start": Row(42, "the hot path: each request passes here once, case by case"),
    "dataplane/proxy/response/delayed_responses.py:_send": Row(
        49, "one order of events that is read from top to bottom"
    ),
    "dataplane/proxy/response/upstream_answers.py:begins": Row(
        55, "the hot path: each answer passes here once, case by case"
    ),
    "dataplane/server/h2/h2_connection.py:Connection.__init__": Row(57, "a list of fields with their words"),
    "dataplane/serving.py:Serving.__init__": Row(54, "a list of parts in the order in which they need each other"),
    "dataplane/table/endpoints.py:_make_plan": Row(46, "a list of arguments: one for each setting of a backend"),
    "dataplane/table/kept.py:Kept.__init__": Row(44, "a list of fields with their words"),
    "dataplane/telemetry/access_log.py:AccessLog._make": Row(49, "a list of fields of a line in their order"),
    "dataplane/upstream/calls/sending.py:Sending.__init__": Row(45, "a list of fields with their words"),
    "dataplane/upstream/connector.py:Connector._try": Row(
        42, "one attempt from top to bottom: what is opened is closed in the same function"
    ),
    "dataplane/upstream/h2/shared_connection.py:SharedConnection.__init__": Row(
        47, "a list of fields with their words"
    ),
}
"""Path and name to lines without the docstring, of functions with more than 40."""
