"""The server under every fake provider: HTTP/1.1 with keep-alive on a free port of 127.0.0.1, the control paths under
/_fake/, faults by script, and the record of all calls. docs/design/fakes.md tells how to write one more.

A fake derives from Fake and gives: parse (which operation is it), verify (is it signed), run (do it), render (a
refusal in that provider's words) and REFUSALS (kind of fault -> refusal). All four run under one lock.
"""
import argparse, base64, email.utils, http.server, json, os, re, shutil, socket, ssl, sys, tempfile, threading
import time, traceback, urllib.parse

from message import Refusal, Reply, Request, unbase64
from world import World

BEFORE = ("drop", "error", "throttle", "auth", "capacity", "quota", "spot_price", "refuse", "page")
AFTER = ("error_after", "drop_after", "unreadable_after")
CREATE_ONLY = ("capacity", "quota", "spot_price", "vanish", "reclaim", "late_error", "lands_late")
MALFORMED = (TypeError, KeyError, AttributeError, ValueError, IndexError)
KINDS = BEFORE + AFTER + ("slow", "lands_late", "skew", "vanish", "reclaim", "duplicates", "late_error", "late_done")
RECORD = os.environ.get("RILLE_FAKE_RECORD")  # a file for each request and its answer: sdk/models_test.py
LOGIN_PAGE = "<html><body>Please log in to the network</body></html>"


class Fake:
    name, currency, billing = "", "USD", {}
    disk_price, address_price = 0.0, 0.0  # what a GB costs for a month, and a public address for an hour
    ENDS = ""  # the operation that ends a machine
    notice, end = 120.0, 1.0
    TYPES, REGIONS = [], {}  # the catalogue; region -> what it costs there times
    REFUSALS, CREATES, LATE = {}, (), ()  # LATE: kinds of faults that the operation takes itself
    NEEDS = {}  # operation -> the permissions that it takes, in one string, as the provider's policies name them
    key_age_days = 30

    def __init__(self, seed, lag, start):
        self.seed = seed  # each has an account of its own
        self.world = World(self.name, seed, lag, start, self.billing)
        self.world.notice, self.world.end = self.notice, self.end
        self.world.prices.update(disk=self.disk_price, address=self.address_price)
        self.types = {t.name: t for t in self.TYPES}
        self.moves = {}  # type -> [(since when, micros as spot)], of those whose price was set anew
        self.lock, self.faults, self.calls = threading.RLock(), [], []
        self.needed, self.lent, self.loans, self.key_lifetime = set(), [], [], 3600
        self.under_way = []  # creates whose caller has heard nothing
        self.certified, self.ca, self.url, self.created, self.duplicate, self.request_id = "", "", "", [], False, ""
        self.prepare()

    def prepare(self):
        """What one fake needs beside the rest."""

    def settings(self):
        return {}

    def env(self):
        return {}

    def secrets(self):
        return []

    def temporary(self):
        """Variables of a second, temporary credential, where the provider has such."""
        return {}

    def ways(self):
        """How else than by `env` its user's tools find keys (lending.py)."""
        return []

    def wrong_ways(self):
        """Ways that lead to no keys, with the message that the user gets (lending.py)."""
        return []

    def close(self):
        """The parent is gone: what this fake has left on the disk goes, too."""

    # Faults.

    def fits(self, fault, operation, request):
        if fault["times"] <= 0 or fault["operation"] not in ("*", operation):
            return False
        if fault["kind"] in CREATE_ONLY and operation not in self.CREATES:
            return False
        text = urllib.parse.unquote(request.target) + "\n" + request.body.decode("utf-8", "replace")
        return fault.get("where", "") in text + "\n" + \
                         urllib.parse.unquote_plus(request.body.decode("utf-8", "replace"))

    def take(self, kinds, operation, request):
        """The first fault of these kinds that fits, used once; None."""
        for fault in self.faults:
            if fault["kind"] in kinds and self.fits(fault, operation, request):
                fault["times"] -= 1
                return fault
        return None

    def refusal(self, kind, fault):
        r = self.REFUSALS[kind if kind in self.REFUSALS else "error"]
        headers = dict(r.headers)
        if fault.get("retry_after") is not None:
            headers["Retry-After"] = str(fault["retry_after"])
        return Refusal(fault.get("status", r.status), fault.get("code", r.code), fault.get("message", r.message),
                       headers, **r.more)

    # One call.

    def answer(self, request):
        """(reply or None for a connection that breaks, seconds to wait before it is sent)."""
        with self.lock:
            self.world.tick()
            self.created, self.request_id, self.asked = [], self.world.uuid(), request
            call = dict(operation="", parameters={}, status=0, time=self.world.now(), token="", fault="",
                        method=request.method, path=request.path)
            self.calls.append(call)
            try:
                operation, parameters = self.parse(request)
                call.update(operation=operation, parameters=parameters)
                call["token"] = self.token_of(parameters, request)
                self.needed |= set(self.needs(operation, parameters))
            except Refusal as r:
                return self.end_call(call, self.render(r, request)), 0
            except MALFORMED as e:
                return self.malformed(call, e, request), 0
            slow = self.take(("slow", ), operation, request)
            reply = self.perform(call, operation, parameters, request)
            return reply, (slow.get("seconds", 1) if slow else 0)

    def perform(self, call, operation, parameters, request):
        if self.take(("lands_late", ), operation, request):
            call["fault"] = "lands_late"
            self.under_way.append(request)
            return self.end_call(call, None)
        before = self.take([k for k in BEFORE if k not in self.LATE], operation, request)
        if before:
            call["fault"] = before["kind"]
            if before["kind"] == "drop":
                return self.end_call(call, None)
            if before["kind"] == "page":  # of a proxy: the provider has heard nothing
                return self.end_call(
                    call, Reply(before.get("status", 200), before.get("body", LOGIN_PAGE), "text/html"))
            return self.end_call(call, self.render(self.refusal(before["kind"], before), request))
        try:
            self.verify(request)
            self.duplicate = bool(self.take(("duplicates", ), operation, request))
            reply = self.run(operation, parameters, request)
        except Refusal as r:
            return self.end_call(call, self.render(r, request))
        except MALFORMED as e:
            return self.malformed(call, e, request)
        self.world.tick()
        if self.created:
            for kind in ("vanish", "reclaim", "late_error"):
                fault = self.take((kind, ), operation, request)
                for machine in self.created if fault else ():
                    self.strike(machine, kind, fault.get("seconds", 0))
        self.world.tick()
        after = self.take(AFTER, operation, request)
        if after:
            call["fault"] = after["kind"]
            reply = None if after["kind"] == "drop_after" else \
                self.unreadable(reply, after) if after["kind"] == "unreadable_after" else \
                self.render(self.refusal("error", after), request)
        return self.end_call(call, reply)

    def land(self):
        """What was under way is done after all, and no token that was seen since is remembered."""
        for request in self.under_way:
            self.world.tokens.clear()
            operation, parameters = self.parse(request)
            self.verify(request)
            self.run(operation, parameters, request)
        done, self.under_way = len(self.under_way), []
        return dict(landed=done)

    def unreadable(self, reply, fault):
        """Half of the answer, or what the fault says instead; a header, as one that names an operation, stays."""
        half = reply.body[:len(reply.body) // 2]
        return Reply(fault.get("status", reply.status), fault.get("body", half), reply.type, reply.headers)

    def malformed(self, call, error, request):
        """A value of another type than the provider has there."""
        call["fault"] = "malformed: " + traceback.format_exc(limit=-3)
        return self.end_call(call, self.render(self.refusal("malformed", dict(message=f"malformed: {error!r}")),
                                               request))

    def strike(self, machine, kind, in_seconds):
        if kind == "reclaim":
            self.reclaim(machine, in_seconds)
        else:
            phase, reason = ("gone", "vanished") if kind == "vanish" else ("failed", "failed")
            machine.go(phase, self.world.now() + in_seconds, reason)

    def end_call(self, call, reply):
        call["status"] = reply.status if reply else 0
        if RECORD and not call["fault"] and reply and isinstance(reply.body, bytes):
            asked = self.asked
            with open(RECORD, "a", encoding="utf-8") as out:
                print(json.dumps(dict(operation=call["operation"], method=asked.method, path=asked.path,
                                      query=asked.query, body=asked.body.decode("utf-8", "replace"),
                                      status=reply.status, answer=reply.body.decode("utf-8", "replace"))), file=out)
        return reply

    def token_of(self, parameters, request):
        return ""

    def needs(self, operation, parameters):
        """What its caller has to be allowed."""
        return self.NEEDS.get(operation, "").split()

    def key_made(self):
        """When the key was made with which the user calls."""
        return self.world.wall() - self.key_age_days * 86400

    # Helps for the fakes.

    def made(self, machine):
        self.created.append(self.world.add(machine))
        return machine

    def price(self, type, spot, region=""):
        """Micros per hour, None where it is not sold so."""
        price = self.types[type].spot if spot else self.types[type].on_demand
        return None if price is None else int(price * self.REGIONS.get(region, 1))

    def spot_then(self, type, region, at, wave):
        """What it cost then as spot, while the fake is there as it was set; before that it went up and down."""
        if at < self.world.began:
            return int(self.price(type, True, region) * wave)
        micros = [m for since, m in self.moves.get(type, [(0, self.types[type].spot)]) if since <= at][-1]
        return int(micros * self.REGIONS.get(region, 1))

    def spot_instants(self, type, hours, start, end):
        """When a history has a point: by the hour, at the fake's beginning, and where a price was set anew."""
        moves = [int(self.world.began)] + [since for since, _ in self.moves.get(type, [])]
        return sorted({*hours, *(at for at in moves if start <= at <= end)}, reverse=True)

    def check_room(self, type, zone, count=1):
        """Raises this provider's quota or capacity error where `set` says that there is no room."""
        if self.world.quota is not None and len(self.world.alive()) + count > self.world.quota:
            raise self.refusal("quota", {})
        left = self.world.left(type, zone)
        if left is not None and left < count:
            raise self.refusal("capacity", {})
        self.world.taken(type, zone, count)

    def page(self, rows, cursor, limit, most, bad):
        """(rows of this page, cursor of the next or ""). `bad` is raised for a cursor that is not ours."""
        rows = [r for row in rows for r in ([row, row] if self.duplicate else [row])]
        start = 0
        if cursor:
            plain = unbase64(cursor)
            if not plain or not re.fullmatch(rb"at \d+", plain):
                raise bad
            start = int(plain[3:])
        size = min(n for n in (limit or most, most, self.world.page_size or most))
        more = start + size < len(rows)
        return rows[start:start + size], base64.b64encode(b"at %d" % (start + size)).decode() if more else ""

    # Control.

    def control(self, what, a):
        world = self.world
        world.tick()
        if what == "state":
            last = int(a.get("calls", len(self.calls)))
            return dict(world.view(), provider=self.name, currency=self.currency, billing=world.billing,
                        ends=[c["time"] for c in self.calls if c["operation"] == self.ENDS],
                        secrets=self.lent + self.secrets(), loans=self.loans, calls=self.calls[len(self.calls) - last:],
                        faults=[f for f in self.faults if f["times"] > 0], needed=sorted(self.needed))
        if what == "fault":
            if a.get("kind") not in KINDS:
                raise ValueError(f"no such kind of fault: {a.get('kind')}; there are {', '.join(sorted(KINDS))}")
            if a["kind"] == "skew":
                world.clock_offset = a.get("seconds", 3600)
            else:
                self.faults.append(dict(dict(operation="*", times=1), **a))
        elif what == "advance":
            world.advanced += a["seconds"]
            world.clock_offset += a["seconds"] if a.get("wall") else 0
            world.tick()
        elif what == "reclaim":
            self.reclaim(self.machine_of(a["id"]), a.get("in_seconds", world.notice))
        elif what == "vanish":
            self.machine_of(a["id"]).vanish()
        elif what == "strand":
            self.strand(self.machine_of(a["id"]))
        elif what == "untag":
            world.things[a["id"]].tags.clear()
        elif what == "land":
            return self.land()
        elif what == "calm":
            self.faults, world.clock_offset = [], 0.0
        elif what == "set":
            self.set(a)
        else:
            raise ValueError(f"no such control: {what}")
        world.tick()
        return {}

    def strand(self, machine):
        """Its disks will outlive it when it vanishes."""
        for thing in self.world.things.values():
            if thing.machine == machine.id and thing.kind == "disk":
                thing.dies_with = False

    def machine_of(self, id):
        """By its id, or by a path that ends with it."""
        return self.world.machines.get(id) or self.world.machines[id.rpartition("/")[2]]

    def reclaim(self, machine, in_seconds):
        machine.reclaim(in_seconds)

    def set(self, values):
        world = self.world
        for key, value in values.items():
            if key == "prices":
                for type, price in value.items():
                    row = self.types[type]
                    if price.get("spot", row.spot) != row.spot:
                        self.moves.setdefault(type, [(0, row.spot)]).append((int(world.now()), price["spot"]))
                    row.spot, row.on_demand = price.get("spot", row.spot), price.get("on_demand", row.on_demand)
                    world.reprice(type, self.price, self.reclaim)
            elif key == "stock":
                world.stock.update(value)
            elif key in ("lag", "list_lag", "start", "end", "notice", "page_size", "clock_offset", "token_lifetime",
                         "ssh_port", "quota"):
                setattr(world, key, value)
                if key == "lag":
                    world.list_lag = value
            elif key in ("disk_price", "address_price"):
                world.prices[key.partition("_")[0]] = value
            elif key == "billing":
                world.billing.update(value)
            elif key in ("key_age_days", "key_lifetime"):
                setattr(self, key, value)
            else:
                raise ValueError(f"no such setting: {key}")

    def metadata(self, request, machine, path):
        """What the machine itself can ask about itself, at URL/_metadata/ID/PATH."""
        return Reply(404, "", "text/plain")

    def host_metadata(self, request, path):
        """The same of the machine that its user works on, if it is one of this provider's: URL/_metadata/host/PATH."""
        return Reply(404, "", "text/plain")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake = None

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def serve(self):
        request = Request(self.command, self.path, self.headers, self.body())
        if request.path.startswith("/_fake/"):
            return self.send(self.control(request))
        if request.path.startswith("/_metadata/"):
            return self.send(self.metadata(request))
        reply, wait_s = self.fake.answer(request)
        if wait_s:
            time.sleep(wait_s)
        if reply is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        return self.send(reply)

    def control(self, request):
        try:
            with self.fake.lock:
                return Reply(
                    200, self.fake.control(request.path[len("/_fake/"):], dict(request.query, **(request.json() or
                                                                                                 {}))))
        except (KeyError, ValueError, TypeError) as e:
            return Reply(400, dict(error=f"{type(e).__name__}: {e}"))

    def metadata(self, request):
        id, _, path = request.path[len("/_metadata/"):].partition("/")
        with self.fake.lock:
            self.fake.world.tick()
            if id == "host":
                return self.fake.host_metadata(request, "/" + path)
            machine = self.fake.world.machines.get(urllib.parse.unquote(id))
            if id == "only":  # as a machine asks that cannot know its id before it is made
                machine = next((m for m in self.fake.world.machines.values() if m.phase == "running"), None)
            if not machine or machine.phase != "running":
                return Reply(404, "", "text/plain")
            return self.fake.metadata(request, machine, "/" + path)

    def send(self, reply):
        stream = reply.body is not None and not isinstance(reply.body, bytes)
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if stream:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in reply.body:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
            return
        if reply.status != 204:
            self.send_header("Content-Length", str(len(reply.body)))
        self._headers_buffer.append(b"\r\n" + (b"" if self.command == "HEAD" or reply.status == 204 else reply.body))
        self.flush_headers()  # head and body in one packet

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = serve

    def date_time_string(self, timestamp=None):
        return email.utils.formatdate(self.fake.world.wall(), usegmt=True)

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError, ValueError, OSError):  # the caller was killed
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size, folder = True, 256, None


def certificate(folder, name):
    """Makes a certificate, and beside it its key."""
    from rsa_key import RsaKey, self_signed
    key, path = RsaKey(name), os.path.join(folder, name + ".pem")
    with open(path, "w") as f:
        f.write(self_signed(key, "127.0.0.1", time.time()))
    with open(path + ".key", "w") as f:
        f.write(key.pem)
    return path


def with_tls(server, folder, client=""):
    """Serves by https, with a certificate of its own; returns its path, for clients to trust. With `client`, a
    certificate's path, only to who has its key."""
    path = certificate(folder, "tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, path + ".key")
    if client:
        context.load_verify_locations(client)
        context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return path


def start(kind, seed=1, lag=0.0, start_s=0.05, tls=False, certified=False):
    """(server, what its user needs), serving on a thread."""
    fake = kind(seed, lag, start_s)
    server = Server(("127.0.0.1", 0), type("Handler", (Handler, ), dict(fake=fake)))
    server.fake, fake.url = fake, f"http{'s' * tls}://127.0.0.1:{server.server_port}"
    more = dict(creates=list(fake.CREATES))
    if tls:
        server.folder = tempfile.mkdtemp(prefix="rille-fake-tls-")
        fake.certified = certificate(server.folder, "client") if certified else ""
        more["ca"] = fake.ca = with_tls(server, server.folder, fake.certified)
    threading.Thread(target=server.serve_forever, args=(0.05, ), daemon=True).start()
    return server, dict(port=server.server_port, settings=fake.settings(), env=fake.env(), secrets=fake.secrets(),
                        temporary=fake.temporary(), ways=fake.ways(), wrong_ways=fake.wrong_ways(), **more)


def main(kind):
    parser = argparse.ArgumentParser(description=f"A scripted fake of {kind.name}.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lag", type=float, default=0.0, help="seconds until describe and list know a new machine")
    parser.add_argument("--start", type=float, default=0.05, help="seconds until a machine runs")
    parser.add_argument("--tls", action="store_true",
                        help="https, with a certificate of its own: `ca` in what it tells")
    parser.add_argument("--certified", action="store_true",
                        help="with --tls: only for a client with a certificate (kubernetes: in its kubeconfig)")
    args = parser.parse_args()
    server, told = start(kind, args.seed, args.lag, args.start, args.tls, args.certified)
    print(json.dumps(told), flush=True)
    sys.stdin.read()
    server.fake.close()
    if server.folder:
        shutil.rmtree(server.folder, ignore_errors=True)
    os._exit(0)
