"""What the fields of a request say. A new field of the API needs a row: until it has one it is refused where it would
be translated."""

from __future__ import annotations

from typing import Final

from dataplane.llm.features import Feature as F
from dataplane.llm.formats.contract import Shapes

_MESSAGE: Final = {"role": F.CORE, "content": F.CORE}
_MARK: Final = {"type": F.CORE, "cache_control": F.CACHE}
_SOURCE: Final = {"type": F.CORE, "media_type": F.CORE}
_CHOICE: Final = {"type": F.CORE, "disable_parallel_tool_use": F.PARALLEL}

SERVER_BLOCKS: Final = (
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "container_upload",
    "tool_reference",
    "browser_state",
)

SHAPES: Final = Shapes(
    fields={
        "": {
            "model": F.CORE,
            "messages": F.CORE,
            "system": F.CORE,
            "stream": F.CORE,
            "max_tokens": F.CORE,
            "tools": F.CORE,
            "tool_choice": F.CORE,
            "thinking": F.CORE,
            "output_config": F.CORE,
            "metadata": F.CORE,
            "temperature": F.TEMPERATURE,
            "top_p": F.TOP_P,
            "top_k": F.TOP_K,
            "stop_sequences": F.STOP,
            "service_tier": F.TIER,
            "cache_control": F.CACHE,
            "container": F.STATE,
            "context_management": F.CONTEXT,
            "diagnostics": F.DIAGNOSTICS,
            "inference_geo": F.PLACE,
            "speed": F.TIER,
            "user_profile_id": F.PLACE,
            "workspace_id": F.PLACE,
        },
        "metadata": {"user_id": F.USER},
        "messages[user]": _MESSAGE,
        "messages[assistant]": _MESSAGE,
        "messages[system]": _MESSAGE,
        "content[text]": {**_MARK, "text": F.CORE, "citations": F.CITED},
        "content[image]": {**_MARK, "source": F.CORE, "transformations": F.DETAIL},
        "content[document]": {
            **_MARK,
            "source": F.DOCUMENT,
            "title": F.CORE,
            "context": F.DOCUMENT_NOTE,
            "citations": F.CITATIONS,
        },
        "source[base64]": {**_SOURCE, "data": F.CORE},
        "source[text]": {**_SOURCE, "data": F.CORE},
        "source[url]": {"type": F.CORE, "url": F.CORE},
        "source[file]": {"type": F.CORE, "file_id": F.ANTHROPIC_FILE},
        "source[content]": {"type": F.CORE, "content": F.CORE},
        "content[thinking]": {"type": F.CORE, "thinking": F.THINKING, "signature": F.SIGNATURE},
        "content[redacted_thinking]": {"type": F.CORE, "data": F.REDACTED},
        "content[tool_use]": {
            **_MARK,
            "id": F.CORE,
            "name": F.CORE,
            "input": F.CORE,
            "caller": F.TOOL_EXTRA,
            "toolset_name": F.TOOL_EXTRA,
        },
        "content[tool_result]": {
            **_MARK,
            "tool_use_id": F.CORE,
            "content": F.CORE,
            "is_error": F.TOOL_ERROR,
            "toolset_name": F.TOOL_EXTRA,
        },
        "tools": {
            **_MARK,
            "name": F.CORE,
            "description": F.CORE,
            "input_schema": F.CORE,
            "strict": F.STRICT,
            "allowed_callers": F.TOOL_EXTRA,
            "defer_loading": F.TOOL_EXTRA,
            "eager_input_streaming": F.TOOL_EXTRA,
            "input_examples": F.TOOL_EXTRA,
        },
        "tool_choice[auto]": _CHOICE,
        "tool_choice[any]": _CHOICE,
        "tool_choice[tool]": {**_CHOICE, "name": F.CORE},
        "tool_choice[none]": {"type": F.CORE},
        "thinking[enabled]": {"type": F.REASONING, "budget_tokens": F.CORE, "display": F.SUMMARY},
        "thinking[adaptive]": {"type": F.REASONING, "display": F.SUMMARY},
        "thinking[between_tools]": {"type": F.REASONING},
        "thinking[disabled]": {"type": F.CORE},
        "output_config": {"effort": F.REASONING, "format": F.CORE},
        "format[json_schema]": {"type": F.SCHEMA, "schema": F.CORE},
    },
    whole={
        "content[search_result]": F.SEARCH_RESULT,
        "tools[*]": F.SERVER_TOOL,
        "input_schema[object]": F.CORE,
        **{f"content[{kind}]": F.SERVER_ITEM for kind in SERVER_BLOCKS},
    },
)
QUIET: Final = {
    "service_tier": "auto",
    "speed": "standard",
    "disable_parallel_tool_use": False,
    "is_error": False,
    "strict": False,
    "caller": {"type": "direct"},
    "citations": {"enabled": False},
}
"""Values that ask for what is so anyway."""
