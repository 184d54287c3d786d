"""Entries of Secrets that are credentials, as people put them there."""

from __future__ import annotations

from dataplane.chain.filter import Env, Refused
from gatewright import invisible


def secret_entry(key: str, name: str, env: Env) -> bytes:
    """An entry of a Secret, without what an editor leaves around it. Raises `Refused`, with nothing of it."""
    text = invisible.without_mark(env.secret(key).get(name, b"")).strip()
    if not text:
        raise Refused(f"{key} has no entry {name}")
    hidden = invisible.hidden(text)
    if hidden:
        raise Refused(f"the entry {name} of {key} has an invisible character, {hidden}")
    return text
