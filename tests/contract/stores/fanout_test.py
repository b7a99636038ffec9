#!/usr/bin/env python3
"""Machines of a run that stage one object: the server sends each part once, and they pass the parts on to each other.
usage: fanout_test.py RILLE [MACHINES] [CASE ..]     a cluster of MACHINES, 4 if none are said

The machines are hosts of `ssh`, each with a folder and so a cache of its own, in a network namespace where the loopback
has an address of a private network, too. The runner's link to them goes through a proxy that counts its bytes."""
import collections, hashlib, http.server, os, random, signal, socket, subprocess, sys, threading, unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "fakes"), str(HERE.parents[1] / "cli"),
                str(HERE.parents[1] / "workflows")]
import json
import fake_store  # noqa: E402
import need  # noqa: E402
import script_test  # noqa: E402
from places import PLACES  # noqa: E402
from sshd import Sshd  # noqa: E402

ADDRESS, PART = "10.77.0.1", 16 << 20


class Logged(fake_store.S3):
    """Notes which ranges machines get, and calls `before` with the number and the client's port of each get."""
    address = ADDRESS

    def __init__(self):
        self.ranges, self.before = collections.Counter(), lambda number, port: None
        super().__init__()

    def answer(self, request):  # not under the lock: `before` may wait
        if request.method == "GET" and "X-Amz-Signature" in request.asked:
            self.ranges[(request.path, request.header("range"))] += 1
            self.before(sum(self.ranges.values()), request.client[1])
        return super().answer(request)


class Proxy:
    """Passes connections on to a port of the loopback, and counts the bytes of both directions."""

    def __init__(self, to):
        self.to, self.bytes = to, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self.to))
            for a, b in ((here, there), (there, here)):
                threading.Thread(target=self.copy, args=(a, b), daemon=True).start()

    def copy(self, a, b):
        try:
            while data := a.recv(1 << 16):
                self.bytes += len(data)
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


class Web(http.server.BaseHTTPRequestHandler):
    """One file with ranges and an ETag."""
    protocol_version, data, ranges = "HTTP/1.1", b"", collections.Counter()

    def do_GET(self):
        text = self.headers.get("Range", "")
        self.ranges[text] += 1
        first, last = (int(n) for n in text.removeprefix("bytes=").split("-")) if text else (0, len(self.data) - 1)
        last = min(last, len(self.data) - 1)
        self.send_response_only(206 if text else 200)
        self.send_header("ETag", '"w1"')
        self.send_header("Content-Length", str(last - first + 1))
        if text:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(self.data)}")
        self.end_headers()
        self.wfile.write(self.data[first:last + 1])

    def log_message(self, *_):
        pass


def process_at(port):
    """The process that has the connection with this local port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if int(row[1].split(":")[1], 16) == port}
    for fd in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(fd) in inodes and int(fd.parts[2]) != os.getpid():
                return int(fd.parts[2])
        except OSError:
            continue
    return None


class Fanout(script_test.Scripts):
    patience_s, machines = 280, 4

    def setUp(self):
        super().setUp()
        self.server.close()
        self.server = Logged()
        self.addCleanup(self.server.close)
        host = self.enterContext(Sshd())
        self.proxy = Proxy(host.port)
        self.addCleanup(self.proxy.close)
        known = Path(host.folder, "known")
        known.write_text(known.read_text() + known.read_text().replace(f":{host.port} ", f":{self.proxy.port} "))
        hosts = [host.settings(name=f"m{i}", directory=f"{host.folder}/m{i}/rented", port=self.proxy.port)
                 for i in range(self.machines + 1)]
        providers = self.root / "providers.json"
        providers.write_text(json.dumps({"ssh": {"hosts": hosts, "options": host.options()}}))
        self.env.update(RILLE_PROVIDERS=str(providers), AWS_ENDPOINT_URL_S3=self.server.endpoint, RILLE_THREADS="1")

    def staged(self, text):
        """Runs the script; the digests that the machines found."""
        done = self.script("""
local function staged(box, from, options)
  box:stage(from, "big", options)
  box:exec("sum", { argv = { "sh", "-c", "sha256sum <big >sum" } })
  box:get("sum", "sums/" .. box.name)
end
local mine = { provider = "ssh", ttl = "1h" }
""" + text)
        return [path.read_text().split()[0] for path in sorted((self.root / "sums").iterdir())], done

    def object(self, size):
        data = random.Random(size).randbytes(size)
        return data, hashlib.sha256(data).hexdigest()

    def once(self, parts):
        self.assertEqual(len(self.server.ranges), parts, self.server.ranges)
        self.assertEqual(set(self.server.ranges.values()), {1}, self.server.ranges)

    def test_a_cluster_and_a_later_machine(self):
        data, digest = self.object(5 * PART + 5)
        self.server.add("big", data)
        sums, done = self.staged(f"mine.count = {self.machines}" + """
local gang = rille.cluster("gang", mine)
gang:each("data", function(box) staged(box, "s3://bucket/big") end)
mine.count, mine.cluster = nil, "gang"
staged(rille.rent("late", mine), "s3://bucket/big")""")
        self.assertEqual(sums, [digest] * (self.machines + 1))
        self.once(6)
        self.assertNotIn("bytes of s3", done.stderr)  # no machine was suspected
        link = self.proxy.bytes / (len(sums) * len(data))
        print(f"the runner's link carried {link:.3%} of the bytes", file=sys.stderr)
        self.assertLess(link, 0.01)

    def test_a_machine_is_killed_while_it_gives(self):
        data, digest = self.object(6 * PART)
        self.server.add("big", data)
        killed = []

        def before(number, port):
            if number == 4:
                killed.append(process_at(port))
                os.kill(killed[0], signal.SIGKILL)

        self.server.before = before
        sums, done = self.staged("""
mine.count = 4
rille.cluster("gang", mine):each("data", function(box) staged(box, "s3://bucket/big") end)""")
        self.assertEqual(len(killed), 1)
        self.assertEqual(sums, [digest] * 4)
        # At most: the killed one's parts once more, by the second machine, and those that were on their way.
        self.assertLess(sum(self.server.ranges.values()), 2 * 6 + 4, self.server.ranges)

    def test_outside_of_a_cluster_a_digest_is_needed(self):
        for key, size in (("one", 100_000), ("two", 100_001)):
            data, digest = self.object(size)
            self.server.add(key, data)
        two = 'local a, b = rille.rent("a", mine), rille.rent("b", mine)\n'
        self.staged(two + 'staged(a, "s3://bucket/one") staged(b, "s3://bucket/one")')
        self.assertEqual(sum(self.server.ranges.values()), 2)
        self.server.ranges.clear()
        options = f'{{ sha256 = "{digest}" }}'
        sums, _ = self.staged(two + f'staged(a, "s3://bucket/two", {options}) staged(b, "s3://bucket/two", {options})')
        self.assertEqual(sums, [digest] * 2)
        self.assertEqual(sum(self.server.ranges.values()), 1)

    def test_an_address_on_the_web(self):
        Web.data, digest = self.object(2 * PART + 1)
        server = http.server.ThreadingHTTPServer((ADDRESS, 0), Web)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.05, ), daemon=True).start()
        sums, _ = self.staged(f"""
mine.count = 4
rille.cluster("gang", mine):each("data", function(box)
  staged(box, "http://{ADDRESS}:{server.server_port}/big", {{ sha256 = "{digest}" }})
end)""")
        self.assertEqual(sums, [digest] * 4)
        self.assertEqual(set(Web.ranges.values()), {1}, Web.ranges)
        self.assertEqual(len(Web.ranges), 3)


if __name__ == "__main__":
    need.met(PLACES["ssh"].missing)
    need.own_network()
    subprocess.run(["ip", "address", "add", ADDRESS + "/24", "dev", "lo"], check=True)
    Fanout.rille = os.path.abspath(sys.argv[1])
    words = sys.argv[2:]
    if words and words[0].isdigit():
        Fanout.machines = int(words.pop(0))
    names = [name for name in unittest.defaultTestLoader.getTestCaseNames(Fanout) if name in vars(Fanout)]
    names = [name for name in names if not words or any(word in name for word in words)]
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(map(Fanout, names)))
    sys.exit(not result.wasSuccessful() or not result.testsRun)
