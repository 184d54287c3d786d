// A cheap backend for the benchmarks, HTTP/1.1 and HTTP/2 by prior knowledge on one port: one thread, epoll, no parsing
// beyond what framing needs.
//   backend PORT
// Any path: 200 with a small body. A path that contains "/sse": 100 events, one every 5 ms, each one chunk and one send.
// A path that contains "/varied": the small body under a head that is another one each time, as real answers have.
// "/counts": how many requests were answered and events sent since the start, so that a measurement need not rely on
// what a load generator happened to finish.
// Over HTTP/2 no header block is decoded: a request without content gets the small body, one with content is taken for
// a unary call of gRPC and gets a message of its size and trailers. Its blocks use the dynamic table, as servers' do.
// Compiled when the benchmarks run; trusts its input.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { CONNECTIONS = 65536, BUFFER = 65536, EVENTS = 100, PACE_MS = 5 };
enum { DATA, HEADERS, SETTINGS = 4, PING = 6, WINDOW_UPDATE = 8, FRAME = 9, PREFACE = 24, OUT = 262144 };
enum { NEW, SMALLS, CALLS, LITERALS };

typedef struct {
    int fd;        // -1 when closed
    int length;    // bytes in buffer
    int left;      // events and the end still to send, 0 when not streaming
    char *buffer;
    int http2;     // the preface has come
    int table;     // whose fields the dynamic table of our blocks has; LITERALS: the client wants none
    long window;   // content that the connection may still be sent
    long unread;   // content for which it has got no window update
} Connection;

static Connection *connections[CONNECTIONS];
static int streaming[CONNECTIONS], streams;
static long requests, events;

static const char SMALL[] =
    "HTTP/1.1 200 OK\r\nServer: backend\r\nDate: Tue, 21 Nov 2026 05:00:00 GMT\r\nContent-Type: text/plain\r\n"
    "Content-Length: 63\r\n\r\nhello from backend, small body 64 bytes ....................ok\n";
static const char STREAM[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";

static void send_all(int fd, const char *bytes, long length) {
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN) return;
            usleep(50);
            continue;
        }
        bytes += sent;
        length -= sent;
    }
}

static void send_event(Connection *c) {
    char data[512], chunk[600];
    c->left--;
    if (c->left == 0) {
        send_all(c->fd, "0\r\n\r\n", 5);
        return;
    }
    int length = snprintf(data, sizeof data,
        "data: {\"id\":\"chatcmpl-abc123\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"
        "\"model\":\"a-model\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token%03d\"},\"finish_reason\":null}]}\n\n",
        c->left);
    length = snprintf(chunk, sizeof chunk, "%x\r\n%s\r\n", length, data);
    send_all(c->fd, chunk, length);
    events++;
}

static void answer(Connection *c, const char *path, int path_length) {
    if (path_length == 7 && !memcmp(path, "/counts", 7)) {
        char body[64], out[160];
        int length = snprintf(body, sizeof body, "%ld %ld", requests, events);
        length = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, body);
        send_all(c->fd, out, length);
        return;
    }
    requests++;
    if (memmem(path, path_length, "/sse", 4)) {
        send_all(c->fd, STREAM, sizeof STREAM - 1);
        c->left = EVENTS + 1;
        streaming[streams++] = c->fd;
    } else if (memmem(path, path_length, "/varied", 7)) {
        char out[sizeof SMALL + 64];
        int length = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nX-Serial: %010ld\r\n%s", requests, SMALL + 17);
        send_all(c->fd, out, length);
    } else {
        send_all(c->fd, SMALL, sizeof SMALL - 1);
    }
}

// HTTP/2: what one read of a connection answers leaves in one write.
static char out[OUT];
static int out_length;

static void frame(int kind, int flags, unsigned stream, const void *payload, int length) {
    unsigned char *at = (unsigned char *)out + out_length;
    unsigned head[] = {length >> 16, length >> 8, length, kind, flags, stream >> 24, stream >> 16, stream >> 8, stream};
    for (int i = 0; i < FRAME; i++) at[i] = head[i];
    memcpy(at + FRAME, payload, length);
    out_length += FRAME + length;
}

// A field whose name is in the static table (`index`), or new (0): into the dynamic table, or as a literal alone.
static int field(char *block, int index, const char *name, const char *value, int indexed) {
    int at = 0, length = strlen(value);
    if (indexed) {
        block[at++] = 0x40 | index;
    } else if (index >= 15) {
        block[at++] = 15;
        block[at++] = index - 15;
    } else {
        block[at++] = index;
    }
    if (!index) {
        block[at++] = strlen(name);
        at += sprintf(block + at, "%s", name);
    }
    block[at++] = length;
    memcpy(block + at, value, length);
    return at + length;
}

static void small(Connection *c, unsigned stream) {
    static const char indexed[] = "\x88\xc1\xc0\xbf\xbe";  // :status 200, then newest last
    const char *body = strstr(SMALL, "\r\n\r\n") + 4;
    char block[256] = "\x88";
    int length = 1, adds = c->table == NEW;
    if (c->table == SMALLS) {
        frame(HEADERS, 4, stream, indexed, 5);
    } else {
        length += field(block + length, 54, "", "backend", adds);
        length += field(block + length, 33, "", "Tue, 21 Nov 2026 05:00:00 GMT", adds);
        length += field(block + length, 31, "", "text/plain", adds);
        length += field(block + length, 28, "", "63", adds);
        frame(HEADERS, 4, stream, block, length);
        if (adds) c->table = SMALLS;
    }
    frame(DATA, 1, stream, body, 63);
    c->window -= 63;
}

static void call(Connection *c, unsigned stream, int size) {
    static const char message[BUFFER];
    char block[64] = "\x88", prefix[5] = {0, 0, 0, size >> 8, size}, content[BUFFER];
    int adds = c->table == NEW;
    if (c->table == CALLS)
        frame(HEADERS, 4, stream, "\x88\xbf", 2);
    else
        frame(HEADERS, 4, stream, block, 1 + field(block + 1, 31, "", "application/grpc", adds));
    memcpy(content, prefix, 5);
    memcpy(content + 5, message, size);
    frame(DATA, 0, stream, content, size + 5);
    c->window -= size + 5;
    if (c->table == CALLS)
        frame(HEADERS, 5, stream, "\xbe", 1);
    else
        frame(HEADERS, 5, stream, block, field(block, 0, "grpc-status", "0", adds));
    if (adds) c->table = CALLS;
}

static long number(const unsigned char *at) { return (long)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }

static void take_settings(Connection *c, const unsigned char *payload, int length) {
    for (int at = 0; at + 6 <= length; at += 6)
        if (payload[at + 1] == 1 && number(payload + at + 2) < 4096) c->table = LITERALS;
    frame(SETTINGS, 1, 0, "", 0);
}

static void take_data(Connection *c, unsigned stream, int length, int ends) {
    c->unread += length;
    if (c->unread > 16384) {
        unsigned char more[4] = {0, 0, c->unread >> 8, c->unread};
        frame(WINDOW_UPDATE, 0, 0, more, 4);
        c->unread = 0;
    }
    if (!ends) return;
    requests++;
    call(c, stream, length > 5 ? length - 5 : 0);
}

// Handle the first frame in the buffer at `at`; how long it was, 0 when it is not whole.
static int take_frame(Connection *c, int at) {
    const unsigned char *head = (unsigned char *)c->buffer + at, *payload = head + FRAME;
    if (c->length - at < FRAME) return 0;
    int length = head[0] << 16 | head[1] << 8 | head[2], kind = head[3], flags = head[4];
    unsigned stream = number(head + 5);
    if (c->length - at < FRAME + length) return 0;
    if (kind == HEADERS && flags & 1) {
        requests++;
        small(c, stream);
    } else if (kind == DATA) {
        take_data(c, stream, length, flags & 1);
    } else if (kind == SETTINGS && !(flags & 1)) {
        take_settings(c, payload, length);
    } else if (kind == PING && !(flags & 1)) {
        frame(PING, 1, 0, payload, length);
    } else if (kind == WINDOW_UPDATE && !stream) {
        c->window += number(payload);
    }
    return FRAME + length;
}

static void take_frames(Connection *c) {
    int at = 0, taken;
    out_length = 0;
    if (!c->http2) {
        if (c->length < PREFACE) return;
        at = PREFACE;
        c->http2 = 1;
        c->window = 65535;
        frame(SETTINGS, 0, 0, "\0\3\0\0\0\x64", 6);  // 100 streams at once
    }
    while ((taken = take_frame(c, at))) {
        at += taken;
        if (out_length > OUT - 2 * BUFFER) {
            send_all(c->fd, out, out_length);
            out_length = 0;
        }
    }
    if (c->window < 0) fprintf(stderr, "the window of a connection is overrun\n"), exit(1);
    memmove(c->buffer, c->buffer + at, c->length - at);
    c->length -= at;
    if (out_length) send_all(c->fd, out, out_length);
}

// Answer the first request in the buffer; 0 when it is not whole.
static int take_request(Connection *c) {
    c->buffer[c->length] = 0;
    char *end = strstr(c->buffer, "\r\n\r\n");
    if (!end) return 0;
    long total = end - c->buffer + 4;
    char *field = strcasestr(c->buffer, "\r\ncontent-length:");
    if (field && field < end) {
        total += atol(field + 17);
    } else if ((field = strcasestr(c->buffer, "\r\ntransfer-encoding:")) && field < end) {
        char *last = memmem(end + 4, c->length - total, "0\r\n\r\n", 5);
        if (!last) return 0;
        total = last - c->buffer + 5;
    }
    if (c->length < total) return 0;
    char *path = strchr(c->buffer, ' ') + 1;
    answer(c, path, strcspn(path, " ?"));
    memmove(c->buffer, c->buffer + total, c->length - total);
    c->length -= total;
    return 1;
}

static void close_connection(Connection *c) {
    for (int i = 0; i < streams; i++)
        if (streaming[i] == c->fd) {
            streaming[i] = streaming[--streams];
            break;
        }
    close(c->fd);
    c->fd = -1;
}

static void accept_one(int listener, int poll) {
    int fd = accept4(listener, 0, 0, SOCK_NONBLOCK), one = 1;
    if (fd < 0) return;
    if (fd >= CONNECTIONS) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!connections[fd]) {
        connections[fd] = calloc(1, sizeof(Connection));
        connections[fd]->buffer = malloc(BUFFER + 1);
    }
    *connections[fd] = (Connection){.fd = fd, .buffer = connections[fd]->buffer};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

static void tick(int timer) {
    char expirations[8];
    if (read(timer, expirations, 8) != 8) return;
    int kept = 0;
    for (int i = 0; i < streams; i++) {
        Connection *c = connections[streaming[i]];
        send_event(c);
        if (c->left) streaming[kept++] = c->fd;
    }
    streams = kept;
}

int main(int count, char **arguments) {
    if (count != 2) return fprintf(stderr, "usage: backend PORT\n"), 2;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 8192)) return perror("bind"), 1;
    int poll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec pace = {{0, PACE_MS * 1000000L}, {0, PACE_MS * 1000000L}};
    timerfd_settime(timer, 0, &pace, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, ready[256];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = timer;
    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event);
    for (;;) {
        int n = epoll_wait(poll, ready, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) {
                accept_one(listener, poll);
            } else if (fd == timer) {
                tick(timer);
            } else {
                Connection *c = connections[fd];
                ssize_t got = recv(fd, c->buffer + c->length, BUFFER - c->length, 0);
                if (got > 0) {
                    c->length += got;
                    if (c->http2 || !memcmp(c->buffer, "PRI", 3)) {
                        take_frames(c);
                        continue;
                    }
                    while (c->length && take_request(c)) {
                    }
                } else if (!(got < 0 && errno == EAGAIN)) {
                    close_connection(c);
                }
            }
        }
    }
}
