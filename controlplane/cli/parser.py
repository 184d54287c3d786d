"""The command line of `gatewright`: every command, option, default and example in one place, and nothing heavier.

Imports the standard library only, so that `gatewright version` and `--help` are instant. What a command does is in the
module of its name; `__main__` loads that one alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from controlplane.cli import exits, options
from controlplane.cli.options import ADMIN, RATE_LIMIT_ADMIN, address, page

MOMENTS = ("connection", "request", "response", "end")
"""As in gatewright.variables.moments; a test compares them."""

SCOPES = ("SystemPrompt", "Messages", "ToolInput", "ToolOutput")
"""As in gatewright.api.backend.prompt_guard; a test compares them."""

LINT_FORMS = ("text", "json", "sarif", "github")
"""As in controlplane.cli.lint."""

TEMPLATES = {
    "split": "two versions of a service, one of which gets a tenth of the requests",
    "ratelimit": "ten requests in a minute for each client",
    "jwt": "only who shows a token is served",
    "https": "TLS, with a certificate for localhost",
    "llm": "LLM providers for the SDKs of OpenAI and Anthropic; offline until a key is written",
    "llm-keys": "keys of your own with budgets in dollars by day and month, for one provider's key",
}
"""What `init` can write; `controlplane.cli.init` has how."""

MANIFEST_PARTS = ("crds", "base", "namespace", "everywhere", "ratelimit")
"""Folders of manifests/ that `crds` prints."""

_DURATION = re.compile(r"(?:[0-9]{1,5}(?:h|ms|m|s)){1,4}")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def duration(text: str) -> float:
    """Seconds from a Gateway API duration (GEP-2257: `30s`, `1m30s`, `500ms`); argparse reports the ValueError."""
    if not _DURATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 30s, 1m30s or 500ms")
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9]+)(h|ms|m|s)", text))


def manifest_part(text: str) -> str:
    """A folder of manifests/."""
    if text not in MANIFEST_PARTS:
        raise argparse.ArgumentTypeError(
            f"there is no part {text!r}; there are {', '.join(MANIFEST_PARTS[:-1])} and {MANIFEST_PARTS[-1]}"
        )
    return text


def count(text: str) -> int:
    """A whole number from 0."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _client_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--admin",
        metavar="ADDR",
        type=address,
        default=ADMIN,
        help="admin address of the controller to ask (default: %(default)s)",
    )


def _up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dir", nargs="?", metavar="DIR", default="examples/quickstart", help="folder of YAML (default: %(default)s)"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="do not show what proxies write to standard output")
    group = parser.add_argument_group("proxies")
    group.add_argument(
        "--proxies", metavar="N", type=count, default=2, help="proxies for each Gateway (default: %(default)s)"
    )
    group.add_argument(
        "--port-offset",
        metavar="N",
        type=count,
        default=0,
        help="add N to every port of the first proxy; each further proxy adds 1000 (default: %(default)s)",
    )
    group.add_argument("--workers", metavar="N", type=count, help="worker processes of each proxy (default: its own)")
    options.add_controller(parser)


def _controller(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", nargs="?", metavar="DIR", help="folder of YAML, watched for changes")
    options.add_cluster(parser)
    options.add_controller(parser)
    options.add_fleet(parser)
    options.add_tenants(parser)
    options.add_proxies(parser)
    options.add_operation(parser)


def _proxy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="handed to the proxy as they are (see its --help)"
    )


def _init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("template", choices=tuple(TEMPLATES), help="what to start from")
    parser.add_argument("dir", nargs="?", metavar="DIR", help="folder to write into (default: named as the template)")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="the file of a desktop MCP client, with mcpServers; or `litellm` and the configuration of LiteLLM's proxy",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where to write it (default: standard output)"
    )
    parser.add_argument(
        "--port", type=count, metavar="PORT", help="port to serve on (default: 3000 for MCP, 4000 as LiteLLM has it)"
    )


def _crds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        type=manifest_part,
        help="crds: definitions of our kinds (the default); base: namespace, service account, rights, GatewayClass; "
        "namespace: what a namespace needs whose Gateways get proxies; everywhere: the right to make them in all; "
        "ratelimit: a rate limit server",
    )


def _lint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder (recursive) or - for standard input")
    parser.add_argument(
        "--output",
        "-o",
        choices=LINT_FORMS,
        default="text",
        help="form of the report: sarif and github are for pipelines (default: %(default)s)",
    )
    parser.add_argument("--strict", action="store_true", help="warnings fail as errors do")
    parser.add_argument(
        "--elsewhere",
        metavar="KIND[,KIND]",
        action="append",
        default=[],
        help="kinds whose objects come from elsewhere (Secret, Service): a reference to one may lead out of the files",
    )


def _cel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("expression", nargs="?", metavar="EXPRESSION", help="the expression; - reads standard input")
    parser.add_argument("--file", "-f", metavar="FILE", help="file with the expression; - for standard input")
    parser.add_argument(
        "--with",
        dest="variables",
        metavar="FILE",
        help="YAML or JSON with values of variables (docs/variables.md); without it the expression is only checked",
    )
    parser.add_argument(
        "--moment",
        choices=MOMENTS,
        default=MOMENTS[-1],
        help="when it is evaluated, which decides what it may read (default: %(default)s, when everything exists)",
    )
    parser.add_argument(
        "--plan", action=argparse.BooleanOptionalAction, default=True, help="show the Python that is made of it"
    )
    parser.add_argument(
        "--output", "-o", choices=("text", "json"), default="text", help="form of the answer (default: %(default)s)"
    )
    parser.add_argument("--json", dest="output", action="store_const", const="json", help="the same as -o json")


def _guard(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        metavar="FILE",
        required=True,
        help="YAML with promptGuard: a GatewayPolicy, a GatewayBackend, or the file of a proxy",
    )
    parser.add_argument(
        "--scope", choices=SCOPES, default="Messages", help="what the text on standard input is (default: %(default)s)"
    )
    parser.add_argument(
        "--output", "-o", choices=("text", "json"), default="text", help="form of the answer (default: %(default)s)"
    )


def _status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "objects", nargs="*", metavar="OBJECT", help="only these: KIND, KIND/NAME or KIND/NAMESPACE/NAME"
    )
    parser.add_argument(
        "--output",
        "-o",
        choices=("text", "wide", "json", "yaml"),
        default="text",
        help="form of the report; wide: with files and generations (default: %(default)s)",
    )
    parser.add_argument("--watch", "-w", action="store_true", help="go on, and print again what is another answer")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when something is not well")
    _client_options(parser)


def _trace_change(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("objects", nargs="+", metavar="OBJECT", help="KIND/NAME or KIND/NAMESPACE/NAME")
    parser.add_argument(
        "--output", "-o", choices=("text", "json"), default="text", help="form of the answer (default: %(default)s)"
    )
    _client_options(parser)


def _wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "objects", nargs="*", metavar="OBJECT", help="KIND, KIND/NAME or KIND/NAMESPACE/NAME; none: every object"
    )
    parser.add_argument(
        "--for",
        dest="condition",
        metavar="CONDITION",
        help="condition that must be True (default: Accepted and, as the kind has them, Programmed of a Gateway, "
        "Attached of a GatewayPolicy, ResolvedRefs)",
    )
    parser.add_argument(
        "--timeout", metavar="DURATION", type=duration, default=30.0, help="give up after this long (default: 30s)"
    )
    _client_options(parser)


def _ratelimit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "limits",
        nargs="?",
        metavar="LIMITS",
        help="file of limits, or folder of them, in the format of Envoy's rate limit server, watched for changes;"
        " without one only limits count that come with requests",
    )
    parser.add_argument(
        "--listen",
        metavar="ADDR",
        type=address,
        default="127.0.0.1:8081",
        help="gRPC, for proxies (default: %(default)s)",
    )
    parser.add_argument(
        "--admin",
        metavar="ADDR",
        type=address,
        default=RATE_LIMIT_ADMIN,
        help="budgets, metrics and probes over HTTP (default: %(default)s)",
    )
    parser.add_argument(
        "--stats",
        metavar="ADDR",
        type=page,
        default=options.OFF,
        help="metrics and probes for scrapers elsewhere, for example [::]:18082 (default: %(default)s)",
    )
    parser.add_argument(
        "--store",
        metavar="STORE",
        default="ratelimit.db",
        help="where it is counted: a file, for one server, or redis://HOST:PORT of Valkey or Redis, for several"
        " (default: %(default)s)",
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain in PEM: gRPC over TLS")
    parser.add_argument("--tls-key", metavar="FILE", help="its key in PEM")
    options.add_log(parser)


def _budgets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--domain", metavar="DOMAIN", help="of this domain alone")
    parser.add_argument(
        "--output", "-o", choices=("text", "json"), default="text", help="form of the answer (default: %(default)s)"
    )
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when a budget is used up")
    parser.add_argument(
        "--admin",
        metavar="ADDR",
        type=address,
        default=RATE_LIMIT_ADMIN,
        help="admin address of the rate limit server to ask (default: %(default)s)",
    )


def _version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", "-o", choices=("text", "json"), default="text", help="form of the answer (default: %(default)s)"
    )


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
  gatewright up --proxies 1 --quiet      one proxy, no access log on the terminal""",
        "controlplane.cli.up",
        _up,
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
        "controlplane.cli.controller",
        _controller,
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
        _proxy,
    ),
    Command(
        "init",
        "write a folder to start from",
        """\
What there is to start from:

"""
        + "\n".join(f"  {name:<10} {summary}" for name, summary in TEMPLATES.items())
        + """

examples:
  gatewright init jwt                    the folder jwt
  gatewright init split ./gateways       another folder; nothing is written over files that are there""",
        "controlplane.cli.init",
        _init,
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
        "controlplane.cli.import_mcp",
        _import,
    ),
    Command(
        "crds",
        "print what a cluster needs, for kubectl apply",
        """\
examples:
  gatewright crds | kubectl apply -f -
  gatewright crds base | kubectl apply -f -
  gatewright crds namespace | kubectl apply -n shop -f -""",
        "controlplane.cli.crds",
        _crds,
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
        "controlplane.cli.lint",
        _lint,
    ),
    Command(
        "cel",
        "try an expression of a policy: its mistakes, its value, what it reads",
        """\
Exit code 0: it can work and, with --with, has a value; 1: it cannot, or has none.

examples:
  gatewright cel 'request.path.startsWith("/admin")'
  gatewright cel 'jwt.sub == "alice"' --with docs/request.yaml
  gatewright cel 'request.headers["x-team"]' --with docs/request.yaml
  gatewright cel -f rule.cel --moment request --json""",
        "controlplane.cli.cel",
        _cel,
    ),
    Command(
        "guard",
        "try guards of prompts on a text: what they mask, what they reject, what waits on a stream",
        """\
The guards are those of the proxies; servers that judge are not asked (NotAsked). Exit code 0, also where the text is
rejected; 1: the file has mistakes or no promptGuard. docs/llm/guards.md has more.

examples:
  gatewright guard --policy guards.yaml < prompt.txt
  gatewright guard --policy guards.yaml --scope ToolOutput -o json < answer.txt""",
        "controlplane.cli.guard",
        _guard,
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
        "controlplane.cli.status",
        _status,
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
        "controlplane.cli.trace_change",
        _trace_change,
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
        "controlplane.cli.wait",
        _wait,
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
        "controlplane.cli.ratelimit",
        _ratelimit,
    ),
    Command(
        "budgets",
        "show who has used what of the limits that a rate limit server counts",
        """\
examples:
  gatewright budgets                     all, with what is left until when
  gatewright budgets --domain keys -o json
  gatewright budgets --exit-code         exit code 1 when a budget is used up""",
        "controlplane.cli.budgets",
        _budgets,
    ),
    Command(
        "version", "print the version", "examples:\n  gatewright version -o json", "controlplane.cli.version", _version
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
