"""WebSockets of OpenAI's realtime API (docs/llm/realtime.md): `serving` reads the request, `call` carries both
directions (`pump`), `session` says what becomes of each message, `turns` counts what the responses come to."""
