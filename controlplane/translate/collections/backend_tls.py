"""BackendTLSPolicies: what each asks for, by what it names. Which of them counts is asked where a backend is made."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.derive import Context, Graph
from controlplane.translate.backend import backend_tls
from controlplane.translate.backend.backend_tls import Firsts, Parts, Target, TLSPolicies, TLSVerdict
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.collections.views import Views
from controlplane.translate.keys import ObjectKey
from gatewright.api.objects.backend_tls_policy import BackendTLSPolicy


class BackendTLS:
    """BackendTLSPolicies."""

    def __init__(self, graph: Graph, inputs: Inputs, views: Views) -> None:
        self._views = views
        self._parts = Parts(views.services, views.gateway_backends)
        self.verdicts = graph.map(
            "backend TLS policies", inputs.backend_tls_policies, self._verdict, backend_tls.untranslated
        )
        self._by_target = self.verdicts.index("target", lambda _, each: _targets(each))
        targets = graph.groups("targets of backend TLS policies", self._by_target)
        firsts = graph.map("backend TLS policies that count", targets, self._firsts, backend_tls.undecided, keeps=False)
        self.policies = TLSPolicies(self._parts, self.verdicts, firsts)

    def _verdict(self, context: Context, key: ObjectKey, policy: BackendTLSPolicy) -> TLSVerdict:
        return backend_tls.verdict(context, self._views.certificates, key, policy)

    def _firsts(self, context: Context, target: Target, _: object) -> Firsts:
        return backend_tls.firsts(context, target, context.fetch_index(self._by_target, target), self._parts)


def _targets(verdict: TLSVerdict) -> Iterator[tuple[str, ObjectKey]]:
    return iter({(place.kind, place.key): None for place in verdict.places})
