"""Simple clients of the fakes, one per provider, for self_test.py: they sign by signatures.py and know two types.

Each has create, describe, list, terminate and the table CODES of what faults look like to it. `describe` gives the
fake's own words for phases: starting, running, stopping, stopped, ending, or gone.
"""
import http.client, importlib, json, pathlib, subprocess, sys

import base

HERE = pathlib.Path(__file__).resolve().parent


class ApiError(Exception):

    def __init__(self, status, code, headers, text=""):
        super().__init__(f"{status} {code} {text}")
        self.status, self.code, self.headers, self.text = status, code, headers, text


class FakeServer:
    """A fake, on a thread of this process."""

    def __init__(self, name, *arguments):
        module = importlib.import_module(name)
        self.server, told = base.start(getattr(module, name.capitalize()), *arguments)
        self.take(told)

    def take(self, told):
        self.port, self.settings, self.env, self.secrets = (told[k] for k in ("port", "settings", "env", "secrets"))
        self.temporary, self.connection, self.told = told["temporary"], None, told

    def close(self):
        if self.connection:
            self.connection.close()
        self.server.shutdown()
        self.server.server_close()
        self.server.fake.close()

    def send(self, method, path, headers=None, body=b""):
        """(status, headers, body) over one kept connection; ConnectionError where it breaks."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            self.connection.request(method, path, body, headers or {})
            reply = self.connection.getresponse()
            return reply.status, reply.headers, reply.read()
        except (http.client.HTTPException, OSError) as e:
            self.connection.close()
            self.connection = None
            raise ConnectionError(str(e)) from e

    def control(self, what, **body):
        status, _, text = self.send("GET" if what == "state" else "POST", "/_fake/" + what,
                                    {"Content-Type": "application/json"},
                                    json.dumps(body).encode())
        if status != 200:
            raise ValueError(text)
        return json.loads(text)

    def state(self):
        return self.control("state")

    def url(self):
        return "http://" + self.host()

    def host(self):
        return f"127.0.0.1:{self.port}"


class FakeProcess(FakeServer):
    """A fake in a process of its own, which ends with this one."""

    def __init__(self, name, *arguments):
        self.process = subprocess.Popen([sys.executable, HERE / f"{name}.py", *map(str, arguments)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.take(json.loads(self.process.stdout.readline()))

    def close(self):
        if self.connection:
            self.connection.close()
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class Client:
    name, token, mismatch = "", True, ""  # whether it has tokens; its error for one with another request
    lagging = "both"  # or "list": describe knows a machine at once; or "": so does list
    spot, paged, noticed, reclaimed = True, True, True, ("gone", "ending")
    CODES = {}  # kind of fault -> code of the error

    def __init__(self, fake, **credentials):
        self.fake, self.credentials, self.shift = fake, dict(fake.env, **credentials), 0

    def secret_names(self):
        return [k for k, v in self.credentials.items() if v in self.fake.secrets]

    def sent(self, token):
        """The token as it goes over the wire; "" where there is none."""
        return token if self.token else ""

    def order(self, **request):
        """A create whose outcome is waited for, where the provider tells it later."""
        return self.create(**request)

    def no_token(self, t, first):
        """Where there are no tokens, the same create makes a second machine."""
        t.assertNotEqual(self.create(token="t-1", tag="one"), first)
        t.equal(len(self.list("one")), 2)

    def renew(self):
        """After credentials or clock have changed."""
