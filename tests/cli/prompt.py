"""The prompt on a pseudo-terminal."""
import os, pty, re, select, termios, time


class Prompt:
    def __init__(self, rille, home, *words, directory=None, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(RILLE_HOME=home, XDG_CONFIG_HOME=home + "/config", TERM="xterm", NO_COLOR="1")
            os.environ.update(env or {})
            if directory:
                os.chdir(directory)
            os.execv(rille, [rille, *words])
        self.seen = "\n"
        self.banner = self.prompt()

    def wait(self, text, seconds=30):
        """Reads until `text` has appeared; gives what came before it."""
        return self.wait_for(re.escape(text), seconds)

    def prompt(self, seconds=30):
        """Reads until there is a new prompt; gives what came before it. The editor draws the line again at each key."""
        before = self.wait_for(r"\n(\d+) rille> ", seconds)
        self.number = int(self.found.group(1))
        return before

    def wait_for(self, pattern, seconds=30):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            left = end - time.monotonic()
            ready, _, _ = select.select([self.fd], [], [], max(0, left))
            if not ready:
                raise AssertionError(f"waited for {pattern!r}, saw {self.seen[-600:]!r}")
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"ended before {pattern!r}, saw {self.seen[-600:]!r}")
            self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode(errors="replace")).replace("\r", "")
        self.found = re.search(pattern, self.seen)
        before, self.seen = self.seen[:self.found.start()], self.seen[self.found.end():]
        return before

    def key(self, bytes_):
        os.write(self.fd, bytes_)

    def end_of_input(self):
        """Ctrl-D, once the line editor listens: before, the terminal takes it for the end of an empty line."""
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            time.sleep(0.01)
        self.key(b"\x04")

    def interrupt(self):
        """Ctrl-C for what was entered, not for the line editor, which takes it as a key until it has let go."""
        while not termios.tcgetattr(self.fd)[3] & termios.ISIG:
            time.sleep(0.01)
        time.sleep(0.3)  # and what was entered has begun
        self.key(b"\x03")

    def enter(self, line, prompt=None):
        self.key(line.encode() + b"\n")
        if prompt:
            return self.wait(prompt)
        return self.prompt().partition("\n")[2]  # without the echo

    def end(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
