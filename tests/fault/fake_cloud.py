"""A cloud in a process of its own, for the provider `remote`: it forgets nothing that a killed runner forgets. Its
trouble is seeded: errors before and after the effect, lost answers, creates that take effect late, throttling, nothing
left, stale lists, slow and lying terminations. It keeps its own bill.
usage: fake_cloud.py SEED; prints its port. Besides the calls of a provider: /calm ends the trouble, /audit tells all.
"""
import http.server, json, random, sys, threading, time

HOUR_US = 3_600_000_000
OFFERS = [  # id, micro-dollars per hour, billing
    ("plain", 2_718_281, dict(unit_s=1, minimum_s=0, minimum_micros=0, from_live=False)),
    ("minutes", 3_141_592, dict(unit_s=60, minimum_s=0, minimum_micros=0, from_live=False)),
    ("floor", 3_600_000, dict(unit_s=1, minimum_s=600, minimum_micros=0, from_live=False)),
]
LAG_US, CREATE_TIMEOUT_US = 200_000, 1_000_000
now_us = lambda: time.time_ns() // 1000


class Cloud:
    def __init__(self, seed):
        self.dice, self.rate, self.lock = random.Random(seed), 0.06, threading.Lock()
        self.machines, self.tokens, self.seen = {}, {}, {}

    def chance(self, what, rate=None):
        hit = self.dice.random() < (self.rate if rate is None else rate) and self.rate > 0
        if hit:
            self.seen[what] = self.seen.get(what, 0) + 1
        return hit

    def end_us(self, m):
        ends = [t for t in (m["ended_us"], m["expires_us"]) if t]
        return min(ends) if ends else None

    def state(self, m, at):
        end = self.end_us(m)
        if end and at >= end:
            return "gone"
        if m["asked_to_end"]:
            return "terminating"
        return "live" if at >= m["live_us"] else "pending"

    def view(self, m):
        return dict(id=m["id"], state=self.state(m, now_us()), tag=m["tag"], created_wall_us=m["from_us"],
                    expires_wall_us=m["expires_us"] or 0, channel={})

    def charge(self, m):
        """Started units of a second or a minute, at least the minimum; a started micro-dollar counts."""
        price, billing = next((p, b) for i, p, b in OFFERS if i == m["offer"])
        end = self.end_us(m)
        lived_us = min(end or now_us(), now_us()) - m["from_us"]
        unit_us = billing["unit_s"] * 1_000_000
        used_us = max(-(-lived_us // unit_us) * unit_us, billing["minimum_s"] * 1_000_000)
        return -(-price * used_us // HOUR_US)

    def offers(self, _):
        return dict(offers=[dict(id=i, provider="remote", gpu="", gpu_count=0, vcpus=4, memory_bytes=16 << 30,
                                 currency="USD", region=f"r{n + 1}", price_micros_per_hour=p, billing=b)
                            for n, (i, p, b) in enumerate(OFFERS)])

    def create(self, r):
        if r["token"] in self.tokens:
            self.seen["token again"] = self.seen.get("token again", 0) + 1
            return self.view(self.machines[self.tokens[r["token"]]])
        if self.chance("nothing left"):
            return 409, dict(error=dict(kind="capacity", message="nothing left"))
        late = self.dice.randrange(CREATE_TIMEOUT_US) if self.chance("late") else 0
        at = now_us() + late
        m = dict(id=f"m-{len(self.machines) + 1}", tag=r["tag"], offer=r["offer"]["id"], from_us=at, ended_us=None,
                 live_us=at + self.dice.randrange(20_000, 120_000), shown_us=at + self.dice.randrange(LAG_US),
                 expires_us=r["expires_wall_us"], asked_to_end=False)
        self.machines[m["id"]], self.tokens[r["token"]] = m, m["id"]
        return None if late else self.view(m)  # None: the connection breaks

    def describe(self, r):
        m = self.machines.get(r["id"])
        hidden = not m or now_us() < m["shown_us"]
        if hidden or (self.state(m, now_us()) == "gone" and self.chance("forgotten", 0.5)):
            return 404, dict(error=dict(kind="state", message="no such machine"))
        return self.view(m)

    def list(self, r):
        return dict(machines=[self.view(m) for m in self.machines.values() if m["tag"].startswith(r["tag"]) and
                              now_us() >= m["shown_us"] and self.state(m, now_us()) != "gone"])

    def terminate(self, r):
        m = self.machines.get(r["id"])
        if not m:
            return 404, dict(error=dict(kind="state", message="no such machine"))
        if self.chance("terminate lied"):
            return {}
        if not m["asked_to_end"]:
            m["asked_to_end"] = True
            m["ended_us"] = now_us() + self.dice.randrange(1_000_000 if self.chance("terminate was slow") else 50_000)
        return {}

    def bill(self, r):
        return dict(bills=[dict(machine_id=m["id"], tag=m["tag"], from_us=m["from_us"], micros=self.charge(m),
                                to_us=self.end_us(m) if self.state(m, now_us()) == "gone" else 0,
                                final=self.state(m, now_us()) == "gone")
                           for m in self.machines.values()
                           if m["id"] in r["machines"] or (r["tag"] and m["tag"].startswith(r["tag"]))])

    def calm(self, _):
        self.rate = 0
        return {}

    def audit(self, _):
        made = {}
        for m in self.machines.values():
            made[m["tag"]] = made.get(m["tag"], 0) + 1
        return dict(alive=[m["id"] for m in self.machines.values() if self.state(m, now_us()) != "gone"],
                    machines=len(self.machines), twice=[t for t, n in made.items() if n > 1],
                    micros=sum(self.charge(m) for m in self.machines.values()), seen=self.seen)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cloud = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name, cloud = self.path.strip("/"), self.cloud
        trouble = name not in ("calm", "audit", "bill")
        time.sleep(cloud.dice.random() * 0.01 * trouble)
        with cloud.lock:
            if trouble and cloud.chance("error"):
                return self.answer(503, dict(error=dict(kind="network", message="try again later")))
            if trouble and cloud.chance("throttled"):
                return self.answer(429, dict(error=dict(kind="quota", message="too many requests")), "0")
            result = getattr(cloud, name)(body)
            lost = result is None or (trouble and cloud.chance("answer lost"))
        time.sleep(cloud.dice.random() * 0.01 * trouble)
        if lost:
            self.close_connection = True
            return
        self.answer(*(result if isinstance(result, tuple) else (200, result)))

    def answer(self, status, value, retry_after=None):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):  # the caller was killed
            self.close_connection = True


if __name__ == "__main__":
    Handler.cloud = Cloud(int(sys.argv[1]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()
