"""The arguments and options of each command of `gatewright`: a function for each, named as the command.

Imports the standard library only, as `parser` does.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from controlplane.cli import options
from controlplane.cli.options import ADMIN, RATE_LIMIT_ADMIN, address, page

MOMENTS = ("connection", "request", "response", "end")
"""As in gatewright.variables.moments; a test compares them."""

SCOPES = ("SystemPrompt", "Messages", "ToolInput", "ToolOutput")
"""As in gatewright.api.backend.prompt_guard; a test compares them."""

LINT_FORMS = ("text", "json", "sarif", "github")
"""As in controlplane.cli.offline.lint."""

TEMPLATES = {
    "split": "two versions of a service, one of which gets a tenth of the requests",
    "ratelimit": "ten requests in a minute for each client",
    "jwt": "only who shows a token is served",
    "https": "TLS, with a certificate for localhost",
    "llm": "LLM providers for the SDKs of OpenAI and Anthropic; offline until a key is written",
    "llm-keys": "keys of your own with budgets in dollars by day and month, for one provider's key",
}
"""What `init` can write; `controlplane.cli.offline.init` has how."""

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


def up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dir",
        nargs="?",
        metavar="DIR",
        default="examples/quickstart",
        help="folder of YAML, or the file of a proxy alone (default: %(default)s)",
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="do not show what proxies write to standard output")
    group = parser.add_argument_group("proxies")
    group.add_argument(
        "--proxies",
        metavar="N",
        type=count,
        default=options.PROXIES,
        help="proxies for each Gateway (default: %(default)s)",
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


def controller(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", nargs="?", metavar="DIR", help="folder of YAML, watched for changes")
    options.add_cluster(parser)
    options.add_controller(parser)
    options.add_fleet(parser)
    options.add_tenants(parser)
    options.add_proxies(parser)
    options.add_operation(parser)


def proxy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="handed to the proxy as they are (see its --help)"
    )


def init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("template", choices=tuple(TEMPLATES), help="what to start from")
    parser.add_argument("dir", nargs="?", metavar="DIR", help="folder to write into (default: named as the template)")


def import_files(parser: argparse.ArgumentParser) -> None:
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


def crds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        type=manifest_part,
        help="crds: definitions of our kinds (the default); base: namespace, service account, rights, GatewayClass; "
        "namespace: what a namespace needs whose Gateways get proxies; everywhere: the right to make them in all; "
        "ratelimit: a rate limit server",
    )


def lint(parser: argparse.ArgumentParser) -> None:
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


def cel(parser: argparse.ArgumentParser) -> None:
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


def guard(parser: argparse.ArgumentParser) -> None:
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


def status(parser: argparse.ArgumentParser) -> None:
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


def trace_change(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("objects", nargs="+", metavar="OBJECT", help="KIND/NAME or KIND/NAMESPACE/NAME")
    parser.add_argument(
        "--output", "-o", choices=("text", "json"), default="text", help="form of the answer (default: %(default)s)"
    )
    _client_options(parser)


def wait(parser: argparse.ArgumentParser) -> None:
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


def ratelimit(parser: argparse.ArgumentParser) -> None:
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


def budgets(parser: argparse.ArgumentParser) -> None:
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


def version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", "-o", choices=("text", "json"), default="text", help="form of the answer (default: %(default)s)"
    )
