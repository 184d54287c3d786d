"""The codes of problems: what a pipeline selects by, and a section of docs/lint.md each.

A code stays what it is once it was released; the words of messages may change.
"""

from __future__ import annotations

from typing import Final

CODES: Final[dict[str, str]] = {
    "unreadable": "a path does not exist, or is no text",
    "invalid": "a document is not what its kind says",
    "defined-twice": "one object stands in two places",
    "unsupported": "a setting is known and does not work yet",
    "refused": "proxies always reject what is written",
    "not-read": "an object or field that Gatewright does not read",
    "unknown-class": "the class of a Gateway is in none of the files",
    "serves-nothing": "nothing of the files can be served",
    "tls-port": "a port for TLS without TLS",
    "no-backend": "a rule that answers every request with 500",
    "leads-nowhere": "a reference to an object that is in none of the files",
    "not-granted": "a reference into another namespace that no ReferenceGrant permits",
    "lacks-part": "a reference to an object that lacks the port or entry that is meant",
    "unknown-section": "a section name that the target does not have",
    "selects-nothing": "a selector that selects no object",
    "no-effect": "a setting that another one beats everywhere",
    "no-section": "a policy that has none of frontend, traffic and backend",
    "dropped-guard": "a security setting that a more specific policy leaves out",
    "left-out": "an entry of a Secret that proxies leave out",
    "not-attached": "a route that no listener admits or serves",
    "leads-back": "a route of connections that leads back to where they came in",
    "bad-condition": "an object that status would show with a problem",
    "expiring": "a certificate that expires within 14 days, or has expired",
    "open-forward": "a forward proxy to anywhere without an authorization policy",
    "lends-certificate": "a Gateway's client certificate that routes of other namespaces use",
    "hardly-meant": "a valid setting that does something else than it seems to",
}
"""Code to what it says, in a few words."""
