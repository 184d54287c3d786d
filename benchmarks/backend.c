// A cheap HTTP/1.1 backend for the benchmarks: one thread, epoll, no parsing beyond what framing needs.
//   backend PORT
// Any path: 200 with a small body. A path that contains "/sse": 100 events, one every 5 ms, each one chunk and one send.
// A path that contains "/varied": the small body under a head that is another one each time, as real answers have.
// "/counts": how many requests were answered and events sent since the start, so that a measurement need not rely on
// what a load generator happened to finish. Compiled when the benchmarks run; trusts its input.
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

typedef struct {
    int fd;        // -1 when closed
    int length;    // bytes in buffer
    int left;      // events and the end still to send, 0 when not streaming
    char *buffer;
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
    *connections[fd] = (Connection){fd, 0, 0, connections[fd]->buffer};
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
                    while (c->length && take_request(c)) {
                    }
                } else if (!(got < 0 && errno == EAGAIN)) {
                    close_connection(c);
                }
            }
        }
    }
}
