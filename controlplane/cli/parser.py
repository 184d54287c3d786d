"""The command line of `gatewright`: every command with its help and examples. Its options are in `command_options`.

Imports the standard library only, so that `gatewright version` and `--help` are instant. What a command does is in the
module of its name; `__main__` loads that one alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from controlplane.cli import command_options, exits


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table of commands. `module` has `run(arguments) -> int`."""

    name: str
    summary: str
    teaches: str
    module: str
    options: Callable[[argparse.ArgumentParser], None]


COMMANDS = (
    Command(
        "up",
        "run everything on this machine from a folder of YAML: controller, proxies, demo servers",
        """\
Starts a controller, two proxies for each Gateway, and the demo servers that the folder asks for, and prints the
addresses of all. Save a file in the folder and the proxies have the change at once. Ctrl-C stops everything.

examples:
  gatewright up                          the example that ships with the product
  gatewright up ./gateways               your own folder
  gatewright up config.yaml              one proxy alone, from its file
  gatewright up --proxies 1 --quiet      one proxy, no access log on the terminal""",
        "controlplane.cli.local.up",
        command_options.up,
    ),
    Command(
        "controller",
        "run the controller alone: a folder of YAML or a cluster in, configuration for proxies out",
        """\
Proxies connect over a Unix socket, or from other hosts over TLS with a token or a certificate, and keep what they have
when the controller goes away.

examples:
  gatewright controller ./gateways
  gatewright controller ./gateways --socket /run/gw.sock
  gatewright controller --kubernetes     a cluster: of the pod, or of the current context of kubectl
  gatewright controller ./gateways --log-format json --stats [::]:18002 --readiness [::]:18003
  gatewright proxy --xds unix:/run/gw.sock --gateway default/web
  gatewright controller ./gateways --xds 0.0.0.0:18000 --xds-tls-cert tls.crt --xds-tls-key tls.key \\
      --xds-token-file tokens
  gatewright proxy --xds controller.example:18000 --xds-ca-file ca.crt --xds-token-file token --gateway default/web""",
        "controlplane.cli.serving.controller",
        command_options.controller,
    ),
    Command(
        "proxy",
        "run one proxy, under a controller or from a file",
        """\
examples:
  gatewright proxy --xds unix:/run/gw.sock --gateway default/web
  gatewright proxy -f config.yaml
  gatewright proxy --from :8080 --to 127.0.0.1:3000   everything from here to there, without a file
  gatewright proxy --help                all options of the proxy""",
        "controlplane.cli.proxy",
        command_options.proxy,
    ),
    Command(
        "init",
        "write a folder to start from",
        """\
What there is to start from:

"""
        + "\n".join(f"  {name:<10} {summary}" for name, summary in command_options.TEMPLATES.items())
        + """

examples:
  gatewright init jwt                    the folder jwt
  gatewright init split ./gateways       another folder; nothing is written over files that are there""",
        "controlplane.cli.offline.init",
        command_options.init,
    ),
    Command(
        "import",
        "write a proxy's file for the servers of a desktop MCP client, or for a configuration of LiteLLM",
        """\
One endpoint for all servers of the client's file, for this machine. Servers that cannot be carried are named with the
reason, and the exit code is 1 then. Values of variables are not copied: the file names them, and the proxy reads them
from its own environment.

examples:
  gatewright import mcp.json -o config.yaml
  gatewright import litellm config.yaml -o gateway.yaml
  gatewright import ~/.config/client/mcp.json --port 4000""",
        "controlplane.cli.offline.import_mcp",
        command_options.import_files,
    ),
    Command(
        "crds",
        "print what a cluster needs, for kubectl apply",
        """\
examples:
  gatewright crds | kubectl apply -f -
  gatewright crds base | kubectl apply -f -
  gatewright crds namespace | kubectl apply -n shop -f -""",
        "controlplane.cli.offline.crds",
        command_options.crds,
    ),
    Command(
        "lint",
        "check YAML without running anything: file, line, field and cure of every problem",
        """\
Exit code 0: no errors (there may be warnings, but for --strict); 1: errors; 4: a path does not exist. Expressions are
checked too, and in a folder what does not fit together, and whether anything would be served. docs/lint.md has a
section for each code of -o json, sarif and github.

examples:
  gatewright lint ./gateways
  gatewright lint route.yaml gateway.yaml
  kubectl get httproute -o yaml | gatewright lint -
  gatewright lint ./gateways -o json
  gatewright lint ./gateways --strict --elsewhere Secret,Service -o github""",
        "controlplane.cli.offline.lint",
        command_options.lint,
    ),
    Command(
        "cel",
        "try an expression of a policy: its mistakes, its value, what it reads",
        """\
Exit code 0: it can work and, with --with, has a value; 1: it cannot, or has none.

examples:
  gatewright cel 'request.path.startsWith("/admin")'
  gatewright cel 'jwt.sub == "alice"' --with examples/request.yaml
  gatewright cel 'request.headers["x-team"]' --with examples/request.yaml
  gatewright cel -f rule.cel --moment request --json""",
        "controlplane.cli.offline.cel",
        command_options.cel,
    ),
    Command(
        "guard",
        "try guards of prompts on a text: what they mask, what they reject, what waits on a stream",
        """\
Texts are judged as proxies do; servers that judge are not asked (NotAsked). Exit code 0, also where the text is
rejected; 1: the file has mistakes or no promptGuard. docs/llm/guards.md has more.

examples:
  gatewright guard --policy guards.yaml < prompt.txt
  gatewright guard --policy guards.yaml --scope ToolOutput -o json < answer.txt""",
        "controlplane.cli.offline.guard",
        command_options.guard,
    ),
    Command(
        "status",
        "show proxies with their acknowledged versions, and objects with their conditions",
        """\
examples:
  gatewright status                      everything
  gatewright status httproute/shop       one object
  gatewright status gateway              one kind
  gatewright status -o json              for scripts; the same as http://127.0.0.1:18001/api/status
  gatewright status --exit-code          exit code 1 when something is not well; 4: what is named does not exist
  gatewright status --watch              again whenever something changed""",
        "controlplane.cli.asking.status",
        command_options.status,
    ),
    Command(
        "trace-change",
        "follow a change: from the object to its resources, to the proxies that serve them, to its conditions",
        """\
With versions and times (UTC): when the controller read the object, when each resource was published, which state each
proxy answered last and how many of the resources it serves. Secrets are never shown. Exit code 4: there is no such
object.

examples:
  gatewright trace-change httproute/shop
  gatewright trace-change gatewaypolicy/default/keys -o json""",
        "controlplane.cli.asking.trace_change",
        command_options.trace_change,
    ),
    Command(
        "wait",
        "wait until objects have a condition, for scripts",
        """\
A condition counts only when it speaks of the newest content of the object; an error in a file counts as not well.

examples:
  gatewright wait                                    until everything works
  gatewright wait gateway/web --timeout 10s          until its proxies have acknowledged it
  gatewright wait httproute --for Accepted""",
        "controlplane.cli.asking.wait",
        command_options.wait,
    ),
    Command(
        "ratelimit",
        "run a rate limit server for `rateLimit.global`: limits and budgets of all proxies together",
        """\
Speaks Envoy's rate limit protocol, version 3, and counts in one file, or in Valkey or Redis for several servers. Limits
may stand in files, or come with requests (`limitOverride`). docs/ratelimit.md has more.

examples:
  gatewright ratelimit limits.yaml
  gatewright ratelimit ./limits --listen [::]:8081 --store /var/lib/gatewright/ratelimit.db
  gatewright ratelimit limits.yaml --store redis://:password@valkey:6379""",
        "controlplane.cli.serving.ratelimit",
        command_options.ratelimit,
    ),
    Command(
        "budgets",
        "show who has used what of the limits that a rate limit server counts",
        """\
examples:
  gatewright budgets                     all, with what is left until when
  gatewright budgets --domain keys -o json
  gatewright budgets --exit-code         exit code 1 when a budget is used up""",
        "controlplane.cli.asking.budgets",
        command_options.budgets,
    ),
    Command(
        "version",
        "print the version",
        "examples:\n  gatewright version -o json",
        "controlplane.cli.offline.version",
        command_options.version,
    ),
)

_EPILOG = """\
first steps:
  gatewright up                          run the example and follow the printed curl lines
  gatewright lint DIR                    check your own files
  gatewright up DIR                      run them
  gatewright status                      see what the proxies made of them

exit codes:
""" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in exits.MEANINGS)


def build() -> argparse.ArgumentParser:
    """The whole parser; `argparse` itself ends the program with 2 for a wrong command line, after naming the cure."""
    parser = argparse.ArgumentParser(
        prog="gatewright",
        description="A gateway for agent traffic, configured with Gateway API resources.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for row in COMMANDS:
        made = commands.add_parser(
            row.name,
            help=row.summary,
            description=row.summary[0].upper() + row.summary[1:] + ".",
            epilog=row.teaches,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            # `proxy` hands everything on, --help too.
            add_help=row.name != "proxy",
        )
        row.options(made)
    return parser
