"""For the tests of several ranks: one process for each, what they said, and what they leave behind to wait for."""
import os, shutil, socket, subprocess, tempfile, time


class Ranks:
    """Processes of one command; every script sees `rille`, `args`, `dev`, `comm`, `rank`, `world` and `mark`."""

    HEAD = """
local rille = require "rille"
local args = rille.args { rank = 0, world = 1, address = "", transport = "any", timeout = "60s", first = "" }
local dev, rank, world = rille.device("cpu"), args.rank, args.world
local function mark(name) rille.step(name, function() io.open(args.first .. name .. rank, "w"):close() end) end
local comm = rille.communicator { rank = rank, world = world, address = args.address, device = dev,
  transport = args.transport, timeout = args.timeout }
"""

    def __init__(self, rille, name):
        self.rille = os.path.abspath(rille)
        self.root = tempfile.mkdtemp(prefix=f"rille-{name}-")

    @staticmethod
    def free_address():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{s.getsockname()[1]}"

    def start(self, name, body, world, ranks=None, **more):
        """more: options of the script; only = { rank: options }."""
        path = f"{self.root}/{name}.lua"
        with open(path, "w") as file:
            file.write(self.HEAD + body)
        address, only, made = self.free_address(), more.pop("only", {}), []
        for r in ranks or range(world):
            home = f"{self.root}/{name}-{r}"
            env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=home, NO_COLOR="1", RILLE_THREADS="1")
            words = dict({"rank": r, "world": world, "address": address}, **more)
            words.update(only.get(r, {}))
            made.append(subprocess.Popen([self.rille, "run", path] + [f"--{k}={v}" for k, v in words.items()], env=env,
                                         cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return made

    @staticmethod
    def ended(processes, limit_s=120):
        """(code, output, errors) of each; None as code where it did not end."""
        out = []
        for p in processes:
            try:
                said, errors = p.communicate(timeout=limit_s)
                out.append((p.returncode, said, errors))
            except subprocess.TimeoutExpired:
                p.kill()
                said, errors = p.communicate()
                out.append((None, said, errors))
        return out

    @staticmethod
    def wait_for(path, processes):
        until = time.monotonic() + 60
        while not os.path.exists(path) and time.monotonic() < until and all(p.poll() is None for p in processes):
            time.sleep(0.01)
        return os.path.exists(path)

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)
