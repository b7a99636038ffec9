"""Ports of the loopback for the ranks of a training: one for each of its attempts."""
import contextlib, socket


def free_ports(count):
    """The first of `count` free ports in a row."""
    while True:
        with contextlib.ExitStack() as held:
            first = held.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                for more in range(1, count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port + more))
                return port
            except (OSError, OverflowError):
                continue
