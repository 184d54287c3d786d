"""In place of the suite's DNS image: answers every query over UDP with the address of who asks."""

import socket

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", 53))
while True:
    query, client = server.recvfrom(4096)
    end = 12
    while end < len(query) and query[end]:
        end += 1 + query[end]
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(client[0])
    print("query from", client, flush=True)
    flags = b"\x85\x80" if query[2] & 1 else b"\x85\0"
    server.sendto(query[:2] + flags + b"\0\1\0\1\0\0\0\0" + query[12 : end + 5] + answer, client)
