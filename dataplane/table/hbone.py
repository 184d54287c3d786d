"""What holds for the listener that ends tunnels of a mesh (HBONE), in place of policies of its Gateway: these are for
what the tunnels carry, which meets them as a connection to the listener that it addressed.

Limits of connections and telemetry count for tunnels too. Who may connect is judged inside alone, where the workload is
known. Pure.
"""

from __future__ import annotations

from typing import Final

from dataplane.http.connect_rules import TUNNEL, ConnectRule
from dataplane.http.connection_rules import ConnectionRules
from dataplane.http.rules import HttpRules
from dataplane.table.plans import ListenerPolicies
from dataplane.tls.settings import H2, TlsSettings

STREAMS: Final = 1000
"""Connections within one tunnel at the same time."""
STREAM_WINDOW: Final = 65_536
CONNECTION: Final = ConnectionRules(
    stream_window=STREAM_WINDOW,
    connection_window=2 * (STREAMS + 1) * STREAM_WINDOW,
    max_streams=STREAMS,
)
"""The connection's window is as large as those of all streams together, also while half of it waits to be given back:
what one of them does not take must not stop the others. So each connection inside is bounded, by its stream."""
TLS: Final = TlsSettings(alpn=(H2,))


def policies_of(policies: ListenerPolicies) -> ListenerPolicies:
    """What of these counts for tunnels, and the rules of these."""
    return ListenerPolicies(
        telemetry=policies.telemetry,
        http=HttpRules(connection=CONNECTION),
        limits=policies.limits,
        tls_settings=TLS,
        tcp=policies.tcp,
        connect=ConnectRule(TUNNEL),
    )
