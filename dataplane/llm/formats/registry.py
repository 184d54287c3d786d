"""The formats of conversations by name. Pure."""

from __future__ import annotations

from typing import Final

from dataplane.llm.formats import completions, converse, gemini, messages, responses
from dataplane.llm.formats.contract import ClientFormat, ProviderFormat
from dataplane.llm.routes import Format

CLIENTS: Final[dict[Format, ClientFormat]] = {
    Format.COMPLETIONS: completions,
    Format.MESSAGES: messages,
    Format.RESPONSES: responses,
}
PROVIDERS: Final[dict[Format, ProviderFormat]] = {
    Format.COMPLETIONS: completions,
    Format.MESSAGES: messages,
    Format.RESPONSES: responses,
    Format.GENERATE_CONTENT: gemini,
    Format.CONVERSE: converse,
}
