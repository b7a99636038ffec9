"""A fake provider, and a user with a home of their own who talks to it by the `rille` command."""
import json, os, re, shutil, subprocess, sys, tempfile, urllib.request
from pathlib import Path

here = Path(__file__).resolve().parent
NOT_OURS = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "curl_ca_bundle")


class User:

    def __init__(self, rille, provider, *words):
        self.program, self.provider = os.path.abspath(rille), provider
        self.root = tempfile.mkdtemp(prefix="rille-user-")
        self.fake = subprocess.Popen([sys.executable, "-B", str(here / "fakes" / (provider + ".py")), *words],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.told = json.loads(self.fake.stdout.readline())
        self.tls, self.beside = "--tls" in words, {}  # beside: what the settings file says besides its provider
        self.shown, self.secrets = [], list(self.told["secrets"])
        Path(self.root, "home").mkdir()

    def close(self, keep=False):
        self.fake.stdin.close()
        self.fake.wait(10)
        if not keep:
            self.remove()

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def ask(self, what, **more):
        """A control of the fake."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        if self.tls:
            import ssl
            opener.add_handler(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=self.told["ca"])))
        url = f"http{'s' * self.tls}://127.0.0.1:{self.told['port']}/_fake/{what}"
        body = None if what == "state" else json.dumps(more).encode()
        return json.loads(opener.open(urllib.request.Request(url, body), timeout=20).read())

    def settings(self, **changes):
        """The fake's, with one region of its zone: what they name (an image, a network) is that region's."""
        settings = dict(self.told["settings"], traits=dict(create_timeout_ms=1_500, visibility_lag_ms=300))
        zone, regions = settings.get("zone", ""), settings.get("regions", [])
        settings["regions"] = [r for r in regions if zone.startswith(r)] or regions
        settings.update(changes)
        return {k: v for k, v in settings.items() if v != [] and v is not None}

    def env(self, **changes):
        kept = {k: v for k, v in os.environ.items() if k.lower() not in NOT_OURS}
        env = dict(kept, **self.told["env"], RILLE_HOME=self.root + "/home/rille", HOME=self.root + "/home",
                   XDG_CONFIG_HOME=self.root + "/config", NO_COLOR="1", RILLE_PROVIDERS=self.root + "/providers.json")
        env.update(changes)
        return {k: v for k, v in env.items() if v is not None}

    def rille(self, *words, settings=None, env=None, timeout=120):
        """(exit code, output, errors) of one command."""
        new = Path(self.root, "providers.json.new")  # renamed: a run beside may read it
        new.write_text(json.dumps(dict(self.beside, **{self.provider: settings or self.settings()})))
        new.replace(Path(self.root, "providers.json"))
        done = subprocess.run([self.program, *words], env=env or self.env(), capture_output=True, text=True,
                              timeout=timeout, cwd=self.root)
        self.shown.append(done.stdout + done.stderr)
        return done.returncode, done.stdout, done.stderr

    def run(self, lua, **more):
        """The same of a workflow."""
        Path(self.root, "flow.lua").write_text('local rille = require "rille"\n' + lua)
        return self.rille("run", self.root + "/flow.lua", **more)

    def leaks(self):
        """Where a secret stands: in what was shown, or in a file that is not the user's own (home/own)."""
        def has(data):
            return any(s.encode() in data for s in self.secrets)

        files = [f for f in Path(self.root).rglob("*") if f.is_file() and f != Path(self.root, "home", "own")]
        return [text[-500:] for text in self.shown if has(text.encode())] + \
            [str(f) for f in files if has(f.read_bytes())]


def errors_in(text):
    """[(kind, message, hint)] of what the command shows."""
    return re.findall(r"^error \((\w+)\): (.*)\n(?:  hint: (.*)\n)?", text, re.M)
