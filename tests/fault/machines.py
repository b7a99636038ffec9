"""A home whose runs rent machines of this computer, for tests that take these away: what runs, what there is, and how
one ends."""
import glob, json, os, shutil, signal, sqlite3, subprocess, tempfile


class Home:
    def __init__(self, rille, prefix, **env):
        self.rille = rille
        self.home = tempfile.mkdtemp(prefix=prefix)
        self.env = dict(os.environ, RILLE_HOME=self.home, XDG_CONFIG_HOME=self.home + "/config", NO_COLOR="1", **env)
        self.log = open(self.home + "/out", "wb")
        self.taken = 0

    def start(self, *words):
        return subprocess.Popen([self.rille, *words], env=self.env, stdout=self.log, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, cwd=self.home)

    def json(self, *words):
        r = subprocess.run([self.rille, *words, "--json"], env=self.env, capture_output=True, timeout=60)
        return json.loads(r.stdout)

    def text(self):
        return open(self.home + "/out", errors="replace").read()

    def instances(self):
        return glob.glob(self.home + "/instances/i-*")

    def processes(self, directory):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                env = open(f"/proc/{pid}/environ", "rb").read()
                line = open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if f"RILLE_INSTANCE={directory}".encode() in env or (directory in line and " agent " in line):
                found.append(int(pid))
        return found

    def take(self, directory):
        """In one instant it is not there any more; then what runs on it ends."""
        gone = self.home + f"/taken-{self.taken}"
        try:
            os.rename(directory, gone)
        except OSError:
            return
        self.taken += 1
        for pid in self.processes(directory):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(gone, ignore_errors=True)

    def rows(self, sql):
        db = sqlite3.connect(self.home + "/journal.db")
        out = db.execute(sql).fetchall()
        db.close()
        return out
