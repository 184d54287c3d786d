# Functions for a shell, to speak MCP with curl: `. examples/mcp/curl.sh`

MCP=${MCP:-http://127.0.0.1:3000/mcp}

# begin [OPTIONS of curl]: a session, whose id is kept in S; prints the status
begin() {
  S=
  answer=$(curl -sS -i "$MCP" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' "$@" \
    -d '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
         "capabilities": {}, "clientInfo": {"name": "curl", "version": "1"}}}' | tr -d '\r')
  S=$(printf '%s\n' "$answer" | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p')
  printf '%s\n' "$answer" | sed -n 1p
}

# mcp METHOD [PARAMS [OPTIONS of curl]]: a request of the session; prints the answer
mcp() {
  method=$1 params=${2:-"{}"}
  shift $(($# > 1 ? 2 : 1))
  curl -sS "$MCP" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -H "Mcp-Session-Id: $S" "$@" -d "{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"$method\", \"params\": $params}"
  echo
}
