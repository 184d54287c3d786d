"""A policy through all rooms in memory: YAML -> wire -> chain -> exchange.

`route` is the body of one route of a standalone file; every answer is what the product's own rooms made of it.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.http.heads import Head
from dataplane.table.plans import RoutePlan, RoutePolicies
from dataplane.table.store import RESOURCE_TYPE, Change
from gatewright.api.standalone import standalone
from tests.fakes.table_state import TableRun, exchange

FILE = """
binds:
- port: {port}
  listeners:
  - name: http
    routes:
    - name: r
"""


def text_of(route: str, port: int = 8080) -> str:
    """The file with one route of this body."""
    return FILE.format(port=port) + textwrap.indent(textwrap.dedent(route).strip("\n"), " " * 6) + "\n"


def served(route: str, port: int = 8080, log: str = "") -> str:
    """The file with one route of this body and a backend; `log`: attributes that its access log adds."""
    text = text_of(textwrap.dedent(route).strip("\n") + "\nbackends: [{host: '127.0.0.1:9000'}]", port)
    return text + (f"frontendPolicies: {{accessLog: {{add: {log}}}}}\n" if log else "")


def problems(route: str) -> list[str]:
    """What the reader of the file finds wrong with a route."""
    return [problem.message for problem in standalone.load(text_of(route), "config.yaml").problems]


def example(page: Path) -> str:
    """The first example of a policy's page."""
    return page.read_text().split("```yaml\n", 1)[1].split("```", 1)[0]


def policies_of(x: Exchange, plan: RoutePlan) -> RoutePolicies:
    """What the rule's policies come to on the exchange's listener, as `proxy/request/entry` finds it."""
    upper = x.listener.upper
    return plan.policies if upper is None else plan.policies.under[upper.number]


class PolicyRun(TableRun):
    """A proxy's table that was made of a route with policies."""

    def __init__(self, route: str, port: int = 8080, may_refuse: bool = False) -> None:
        """`may_refuse`: the table may refuse policies (`self.refused`)."""
        super().__init__()
        loaded = standalone.load(text_of(route, port), "config.yaml")
        assert not loaded.problems, [str(problem) for problem in loaded.problems]
        self.apply(*(Change(RESOURCE_TYPE, each.key, each.SerializeToString()) for each in loaded.resources))
        assert may_refuse or self.refused == {}
        self.port = port

    def route(self, x: Exchange) -> RoutePlan:
        plan = self.plan(x, f"bind/default/standalone/{self.port}")
        assert plan is not None
        x.policies = policies_of(x, plan)
        return plan

    def request(self, x: Exchange) -> Reply | None:
        """Route an exchange and run the request steps of its rule."""
        self.route(x)
        step = x.policies.chain.request
        answer = None if step is None else step(x)
        assert answer is None or isinstance(answer, Reply)
        return answer

    def respond(self, status: int, headers: bytes = b"") -> Exchange:
        """Run the response steps on an answer with these header lines."""
        x = exchange()
        self.request(x)
        x.status, x.response = status, Head(b"\r\n" + headers)
        step = x.policies.chain.response
        assert step is not None and step(x) is None
        return x
