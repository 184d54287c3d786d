"""A thought of OpenAI's models as others carry it: its id and its encrypted content in one signature, since the API
wants both back."""

from __future__ import annotations

from dataplane.llm.formats.signatures import MARK


def signed(item_id: str, encrypted: str) -> str:
    """Of an item; "" where it has no encrypted content. That of another provider's thought comes back as it is."""
    if not encrypted or encrypted.startswith(MARK):
        return encrypted
    return f"{item_id}:{encrypted}"


def parts(signature: str) -> tuple[str, str]:
    """Id and encrypted content."""
    item_id, _, encrypted = signature.partition(":")
    return item_id, encrypted
