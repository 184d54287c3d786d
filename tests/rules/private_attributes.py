"""Which tests look at private attributes of the product, how often, and why: `test_private_attributes` compares.

A row grows only with its reason, and gets smaller with what it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LOOKS: Final[Mapping[str, Mapping[str, int]]] = {
    "puts a fake where the product has a socket, clock, channel or settings that no argument gives": {
        "tests/fakes/memory_proxy.py": 1,
        "tests/histories/planes.py": 6,
        "tests/loopback/test_commit_of_states.py": 5,
        "tests/loopback/test_mesh_out.py": 5,
        "tests/loopback/test_worker_lives.py": 1,
        "tests/loopback/test_xds_storms.py": 1,
        "tests/policies/test_mcp_arranged.py": 2,
        "tests/policies/test_mcp_sse_clients.py": 1,
        "tests/unit/agent/test_agent_lives.py": 3,
        "tests/unit/agent/test_mesh_workload.py": 1,
        "tests/unit/app/test_object_source.py": 1,
        "tests/unit/app/test_pipeline.py": 3,
        "tests/unit/app/test_readings.py": 2,
        "tests/unit/backends/test_terminator.py": 3,
        "tests/unit/cli/test_local_processes.py": 2,
        "tests/unit/link/test_channel.py": 8,
        "tests/unit/proxy/test_entry.py": 1,
        "tests/unit/ratelimit/test_ratelimit_decisions.py": 2,
        "tests/unit/test_worker.py": 4,
        "tests/unit/tls/test_tls_transport.py": 4,
    },
    "takes one step by hand that the product takes by its own clock, or when a peer says so": {
        "tests/loopback/test_tls_to_backends.py": 1,
        "tests/loopback/test_udp_routes.py": 4,
        "tests/policies/test_calls_inherit.py": 1,
        "tests/unit/agent/test_file_source.py": 1,
        "tests/unit/agent/test_hand_out.py": 3,
        "tests/unit/agent/test_xds_client.py": 2,
        "tests/unit/app/test_app.py": 1,
        "tests/unit/app/test_app_facts.py": 7,
        "tests/unit/app/test_trace_option.py": 2,
        "tests/unit/files/test_regular_files.py": 1,
        "tests/unit/server/test_states.py": 2,
        "tests/unit/sources/test_directory.py": 9,
        "tests/unit/sources/test_directory_times.py": 1,
        "tests/unit/telemetry/test_process_log.py": 2,
        "tests/unit/upstream/test_connector_pools.py": 2,
        "tests/unit/xds/test_fleet_reports.py": 1,
        "tests/unit/xds/test_hub.py": 1,
    },
    "looks at what is kept, of which nothing outside shows what it is": {
        "tests/cluster/test_credentials.py": 1,
        "tests/fakes/memory_agent.py": 5,
        "tests/fuzz/target_h2_frames.py": 4,
        "tests/policies/test_backend_knobs.py": 3,
        "tests/policies/test_basic_authentication.py": 2,
        "tests/unit/http/h1/test_values.py": 2,
        "tests/unit/http_h2/test_h2_both_ends.py": 1,
        "tests/unit/http_h2/test_h2_encoder.py": 5,
        "tests/unit/mcp/test_dialogue.py": 2,
        "tests/unit/mcp/test_held_streams.py": 8,
        "tests/unit/mcp/test_mcp_rules.py": 3,
        "tests/unit/mcp/test_stream_clients.py": 2,
        "tests/unit/mcp/test_visits.py": 1,
        "tests/unit/snapshot/test_coalesce.py": 3,
        "tests/unit/table/test_interns.py": 1,
        "tests/unit/telemetry/test_metric_slots.py": 1,
        "tests/unit/translate/test_program.py": 1,
        "tests/unit/xds/test_admission.py": 1,
        "tests/unit/xds/test_delta_library.py": 2,
        "tests/unit/xds/test_tokens.py": 3,
    },
    "waits for a moment inside, or makes one, that no event outside shows": {
        "tests/histories/world.py": 2,
        "tests/loopback/test_grpc_streams.py": 3,
        "tests/policies/test_health.py": 1,
        "tests/unit/agent/test_agent_under_a_controller.py": 1,
        "tests/unit/kube/test_beside.py": 3,
        "tests/unit/kube/test_cluster_source.py": 1,
        "tests/unit/link/test_evictions.py": 2,
        "tests/unit/xds/test_session.py": 27,
        "tests/unit/xds/test_stream_accounts.py": 1,
    },
    "asks whether a process or thread of the product's lives, is another one, or has ended": {
        "tests/unit/agent/test_reader_process.py": 9,
        "tests/unit/sources/test_aside.py": 4,
        "tests/unit/sources/test_watch.py": 5,
        "tests/unit/sources/test_watch_groups.py": 8,
    },
    "plants a fault that histories have to notice": {
        "tests/histories/test_histories_notice.py": 1,
    },
    "of another library, where the product has an attribute of the same name": {
        "tests/faults/world.py": 1,
        "tests/loopback/test_bad_collectors.py": 1,
        "tests/policies/test_frontend_tls.py": 1,
        "tests/raw/parsers.py": 1,
        "tests/rules/test_page_options.py": 1,
        "tests/unit/app/test_other_tenants.py": 1,
    },
}
"""Reason to tests to numbers."""
