"""Which xDS address may serve what: the rules between the options of a controller's TCP listener. Pure.

Resources hold secrets. So they leave over TCP only through TLS, and only to proxies that show a token or a
certificate. Loopback has one exception, which must be asked for.
"""

from __future__ import annotations

from controlplane.settings import Security, is_loopback, shown


class Exposed(Exception):
    """The options would serve xDS to every client; the text says what to do."""


BELOW_LOCALHOST = ".localhost"
"""Names that RFC 6761 gives to loopback, and a resolver may give to any address."""

TLS = "--xds-tls-cert FILE and --xds-tls-key FILE"
WHO = "--xds-token-file FILE (tokens) or --xds-client-ca FILE (client certificates)"


def check(address: tuple[str, int], security: Security) -> None:
    """Raises Exposed when the options do not fit together for this address."""
    if security.service_accounts:
        _check_accounts(security)
        return
    local, where = is_loopback(address[0]) and not address[0].endswith(BELOW_LOCALHOST), shown(address)
    has_tls = security.certificate is not None
    knows_proxies = security.token_file is not None or security.client_authority is not None
    if security.insecure and not local:
        raise Exposed(f"--xds-insecure is for loopback addresses only, not for {where}; give {TLS}, and {WHO}")
    if (security.certificate is None) != (security.key is None):
        raise Exposed("--xds-tls-cert and --xds-tls-key are needed both")
    if not has_tls and not local:
        raise Exposed(
            f"{where} can be reached from other machines, so xDS needs TLS there: give {TLS}, and {WHO};"
            " or name an address of loopback with --xds"
        )
    if not has_tls and security.client_authority is not None:
        raise Exposed(f"--xds-client-ca needs TLS: give {TLS}")
    if not has_tls and security.token_file is not None and not security.insecure:
        raise Exposed(f"--xds-token-file needs TLS, so that the tokens cannot be read on the way: give {TLS}")
    if has_tls and not knows_proxies and not security.insecure:
        raise Exposed(f"TLS alone lets every client have every Gateway's secrets: give {WHO}")


def _check_accounts(security: Security) -> None:
    """The cluster knows authority and tokens: files beside them would say something else."""
    files = (security.certificate, security.key, security.client_authority, security.token_file)
    if security.insecure or any(file is not None for file in files):
        raise Exposed(
            "--xds-service-accounts has its certificates and tokens from the cluster; it does not go together with"
            " --xds-insecure, --xds-tls-cert, --xds-tls-key, --xds-client-ca and --xds-token-file"
        )
