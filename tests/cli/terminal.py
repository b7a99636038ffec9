"""What a command prints on a terminal."""
import fcntl, os, pty, struct, subprocess, termios


def on_terminal(argv, columns, env, cwd, returns=False):
    """All of it, on one of so many columns, with plain ends of lines, and without other carriage returns unless
    `returns`."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(argv, env=env, stdin=follower, stdout=follower, stderr=follower, cwd=cwd)
    os.close(follower)
    out = b""
    try:
        while block := os.read(leader, 65536):
            out += block
    except OSError:
        pass
    process.wait(timeout=60)
    os.close(leader)
    return out.decode().replace("\r\n" if returns else "\r", "\n" if returns else "")
