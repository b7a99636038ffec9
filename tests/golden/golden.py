"""What make.py and golden_test.py have in common: the rows that a journal of one run is made of."""
import json, os, shutil, sqlite3, subprocess, tempfile

here = os.path.dirname(os.path.abspath(__file__))
folder = here + "/format-1"
# Leases and the audit trail are left out: the machines are gone, and the trail is of one journal.
tables = ["runs", "sources", "blobs", "entries", "begun", "inbox"]
scripts = ["steps", "fibers", "child"]


class Home:
    """A RILLE_HOME of its own, with the command."""

    def __init__(self, rille):
        self.rille = os.path.abspath(rille)
        self.root = tempfile.mkdtemp(prefix="rille-golden-")
        self.env = dict(os.environ, RILLE_HOME=self.root + "/home", XDG_CONFIG_HOME=self.root + "/config", NO_COLOR="1")
        self.run("ps")  # makes the journal

    def run(self, *words, **options):
        return subprocess.run([self.rille, *words], env=self.env, capture_output=True, text=True, timeout=120,
                              cwd=self.root, **options)

    def result(self, *words):
        r = self.run("--json", *words)
        try:
            return json.loads(r.stdout)["result"]
        except (ValueError, KeyError):
            raise SystemExit(f"rille {' '.join(words)} failed:\n{r.stdout}{r.stderr}")

    def survive(self):
        """From here on the step `die` goes on."""
        open(self.root + "/home/survive", "w").close()

    def remove(self):
        shutil.rmtree(self.root)

    def journal(self):
        return sqlite3.connect(self.root + "/home/journal.db")

