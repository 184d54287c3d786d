"""A process that has loaded all that a worker needs, and becomes one worker after the other by forking.

Loading takes half a second of processor time; a fork takes milliseconds, and its pages are shared with the others as
long as none of them writes to these. The server itself has no event loop, no thread and no state of the proxy: only so
is a fork of it a worker that was just started. It ends when the agent is gone; its workers notice that themselves.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket

from dataplane.link.channel import CLOEXEC
from dataplane.link.forks import QUESTION, Report


def serve(control: socket.socket) -> socket.socket | None:
    """Returns in each worker, with its end of its link; in the server when the agent is gone, with None.

    `control` is closed by then, and so is all else that belongs to the server.
    """
    for number in _FOR_THE_AGENT:
        signal.signal(number, signal.SIG_IGN)
    _call_itself("gw-fork-server")
    workers: dict[int, int] = {}
    try:
        return answer_all(control, workers)
    finally:
        control.close()
        for fd in workers:
            os.close(fd)


def answer_all(control: socket.socket, workers: dict[int, int]) -> socket.socket | None:
    """`workers`: descriptors of processes -> pids."""
    poll = select.poll()  # not epoll, whose kernel object a fork would share with the server
    poll.register(control, select.POLLIN)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the agent is gone in the middle of a sentence
        while True:
            for fd, _ in poll.poll():
                if fd in workers:
                    poll.unregister(fd)
                    control.sendall(_reap(fd, workers.pop(fd)).encode())
                    continue
                data, links, _, _ = socket.recv_fds(control, len(QUESTION), 1, CLOEXEC)
                if not data:
                    return None
                link = socket.socket(fileno=links[0])
                if _is_worker(control, poll, workers):
                    return link
                link.close()
    return None


def _is_worker(control: socket.socket, poll: select.poll, workers: dict[int, int]) -> bool:
    """Fork once: True in the worker. The server says what became of it."""
    try:
        pid = os.fork()
    except OSError as error:
        control.sendall(Report(False, 0, error.errno or 1).encode())
        return False
    if not pid:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _call_itself("gw-worker")
        return True
    fd = os.pidfd_open(pid)
    workers[fd] = pid
    poll.register(fd, select.POLLIN)
    socket.send_fds(control, [Report(False, pid, 0).encode()], [fd])
    return False


def _reap(fd: int, pid: int) -> Report:
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return Report(True, pid, os.waitstatus_to_exitcode(status))


def _call_itself(name: str) -> None:
    """For `ps` and `top`, which would show the same command for the server and all workers. At most 15 bytes."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:  # where there is no /proc
        file.write(name)


_FOR_THE_AGENT = signal.SIGINT, signal.SIGTERM
"""Ctrl-C reaches every process of a terminal, and a service manager may send SIGTERM to every process of a service: the
agent decides what follows."""
