#!/usr/bin/env python3
"""Vast.ai: offers (asks) of single hosts that are rented whole, bids for interruptible ones, a bearer key; no
idempotency. Paths end with a slash. True to its trap: a create that bids too little is refused, and has made a stopped
instance.
"""
import json, re

from base import Fake, Refusal, Reply, main
from rules import Rules, flatten
from world import Machine, Type

CREATE = Rules(
    "image disk label runtype onstart args.N args_str env.* env price target_state cancel_unavail image_login vm "
    "template_hash_id client_id use_jupyter_lab jupyter_dir lang_utf8 python_utf8 force extra user")
SEARCH = {"limit", "type", "order", "allocated_storage"}
ROUTES = [("POST", r"/api/v0/bundles/", "searchOffers"), ("PUT", r"/api/v0/asks/(\d+)/", "createInstance"),
          ("GET", r"/api/v0/instances/(\d+)/", "showInstance"), ("GET", r"/api/v1/instances/?", "listInstances"),
          ("GET", r"/api/v0/instances/?", "listAll"), ("PUT", r"/api/v0/instances/bid_price/(\d+)/", "changeBid"),
          ("PUT", r"/api/v0/instances/(\d+)/", "manageInstance"),
          ("DELETE", r"/api/v0/instances/(\d+)/", "destroyInstance"), ("POST", r"/api/v0/ssh/", "createSshKey"),
          ("GET", r"/api/v0/ssh/", "listSshKeys"), ("POST", r"/api/v0/instances/(\d+)/ssh/", "attachSshKey"),
          ("GET", r"/api/v0/users/current/", "showUser")]
STATUS = {
    "starting": "loading", "running": "running", "stopping": "exited", "stopped": "exited", "ending": "exited",
    "failed": "exited"
}
PLACES = ["Norway, NO", "Texas, US", "Taiwan, TW"]
OPERATORS = {
    "eq": lambda a, b: a == b, "neq": lambda a, b: a != b, "gt": lambda a, b: a > b, "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b, "lte": lambda a, b: a <= b, "in": lambda a, b: a in b, "notin": lambda a, b: a not in b
}


def like(have, wanted):
    """A number that came as text, as the provider's own command sends it, is a number."""
    return type(have)(wanted) if type(have) in (int, float) and isinstance(wanted, str) else wanted


def bad(status, error, message, headers=None, **more):
    return Refusal(status, error, message, headers, **more)


class Vast(Fake):
    name, notice, end = "vast", 0.0, 0.0
    billing = dict(unit_s=1, minimum_s=0, from_live=False, until="ending")
    ENDS, disk_price = "destroyInstance", 0.15
    CREATES = ("createInstance", )
    TYPES = [
        Type("Tesla T4", "Tesla T4", 1, 16, 8, 32, 150_000, 60_000),
        Type("RTX A4000", "RTX A4000", 2, 16, 16, 64, 210_000, 90_000),
        Type("A10", "A10", 1, 24, 16, 64, 320_000, 130_000),
        Type("A100 SXM4", "A100 SXM4", 8, 80, 128, 1024, 9_600_000, 4_000_000),
        Type("A100 PCIE", "A100 PCIE", 2, 80, 48, 256, 2_200_000, 900_000),
        Type("H100 SXM", "H100 SXM", 8, 80, 192, 2048, 17_600_000, 8_000_000)
    ]
    REFUSALS = {
        "malformed": bad(400, "invalid_args", "malformed"),
        "capacity": bad(404, "invalid_args", "error 404/3603: no_such_ask Instance type by id is not available."),
        "quota": bad(400, "insufficient_credit", "Your account lacks credit; see the billing page."),
        "throttle": bad(429, "", "API requests too frequent endpoint threshold=1.0"),
        "error": bad(500, "internal_error", "Internal server error"),
        "auth": bad(401, "auth_error", "Invalid user key"), "spot_price": bad(400, "invalid_price",
                                                                              "The bid is below the minimum.")
    }

    NEEDS = {
        "searchOffers": "misc", "showUser": "user_read", "createInstance": "instance_write",
        "destroyInstance": "instance_write", "showInstance": "instance_read", "listInstances": "instance_read"
    }

    def prepare(self):
        self.key, self.world.pays_bid = self.world.word(64), True
        self.asks, self.ssh_keys, self.next = {}, [], 1_234_567
        for n, t in enumerate(self.TYPES):
            for k, place in enumerate(PLACES * 4):
                id = 8_000_000 + n * 100 + k
                self.asks[id] = dict(id=id, type=t, place=place, machine_id=40_000 + n * 10 + k, host_id=900 + k)

    def settings(self):
        return dict(endpoints=dict(vast=self.url + "/api"), regions=PLACES, image="pytorch/pytorch:2.4.0-cuda12.4")

    def env(self):
        return dict(VAST_API_KEY=self.key)

    def secrets(self):
        return [self.key]

    def parse(self, request):
        for method, path, name in ROUTES:
            found = re.fullmatch(path, request.path)
            if found and method == request.method:
                self.id = int(found.group(1)) if found.groups() else None
                p = dict(request.json() or {}, **dict(request.query), **({"id": self.id} if self.id else {}))
                p.pop("api_key", None)
                return name, p
        return "unknown", {}

    def verify(self, request):
        """The key is in the header; the provider's own command still sends it in the query."""
        if request.header("Authorization") != "Bearer " + self.key and request.arg("api_key") != self.key:
            raise self.refusal("auth", {})

    def render(self, r, request):
        if r.status == 429:
            return Reply(429, r.message, "text/plain", r.headers)
        return Reply(r.status, dict(dict(success=False, error=r.code, msg=r.message), **r.more), headers=r.headers)

    def run(self, operation, p, request):
        if operation == "unknown":
            if re.fullmatch(r"/api/v0/.*[^/]", request.path):
                return Reply(308, "", "text/html", {"Location": request.path + "/"})
            raise bad(404, "not_found", "There is nothing here.")
        if request.body and request.json() is None:
            raise bad(400, "invalid_args", "error 400/3: the body is no JSON object")
        return Reply(200, getattr(self, operation)(request.json() or {}, request))

    # Offers.

    def rented(self, ask):
        return any(m.facts["ask"] == ask["id"] for m in self.world.alive())

    def offer(self, ask, kind):
        t = ask["type"]
        price = t.spot if kind == "bid" else t.on_demand
        none = self.world.left(t.name, ask["place"]) == 0
        return dict(id=ask["id"], ask_contract_id=ask["id"], machine_id=ask["machine_id"], host_id=ask["host_id"],
                    gpu_name=t.gpu, num_gpus=t.count, gpu_ram=t.gpu_gib * 1024,
                    gpu_total_ram=t.gpu_gib * 1024 * t.count, cpu_cores_effective=float(t.vcpus),
                    cpu_ram=t.memory_gib * 1024, disk_space=500.0, dph_base=price / 1e6, dph_total=price / 1e6,
                    min_bid=t.spot / 1e6, storage_cost=self.world.prices["disk"],
                    inet_up=900.0, inet_down=900.0, inet_up_cost=0.002,
                    inet_down_cost=0.002, reliability=0.995, reliability2=0.995, geolocation=ask["place"],
                    cuda_max_good=12.8, driver_version="570.86", rentable=not none and not self.rented(ask),
                    rented=self.rented(ask), verified=True, verification="verified", duration=2_592_000.0,
                    is_bid=kind == "bid", static_ip=True, direct_port_count=10, dlperf=50.0,
                    score=round(t.gpu_gib * t.count / price * 1e6, 1), external=False)

    def searchOffers(self, p, request):
        kind, rows = p.get("type", "ondemand"), []
        if kind not in ("ondemand", "on-demand", "bid", "reserved"):
            raise bad(400, "invalid_args", f"error 400/3: type {kind}")
        for ask in self.asks.values():
            row = self.offer(ask, kind)
            for field, rule in p.items():
                if field in SEARCH:
                    continue
                if field not in row or not isinstance(rule, dict) or set(rule) - set(OPERATORS):
                    raise bad(400, "invalid_args", f"error 400/3: {field} {rule}")
                if not all(OPERATORS[o](row[field], like(row[field], v)) for o, v in rule.items()):
                    break
            else:
                rows.append(row)
        for field, order in reversed(p.get("order", [])):
            rows.sort(key=lambda r: r[field], reverse=order == "desc")
        return dict(success=True, offers=rows[:min(int(p.get("limit", 64)), 64)])

    # Instances.

    def createInstance(self, p, request):
        flat = flatten(p) if p else {}
        if CREATE.unknown(flat) or not (p.get("image") or p.get("template_hash_id")):
            raise bad(400, "invalid_args", f"error 400/3: {CREATE.unknown(flat) or 'image'}")
        if p.get("runtype", "ssh_direct").split(" ")[0] not in ("ssh", "ssh_direct", "ssh_proxy", "ssh_direc", "args",
                                                                "jupyter", "jupyter_direct", "jupyter_proxy"):
            raise bad(400, "invalid_args", f"error 400/3: runtype {p['runtype']}")
        if len(str(p.get("label") or "")) > 1024 or not isinstance(p.get("disk", 10), (int, float)):
            raise bad(400, "invalid_args", "error 400/3: label or disk")
        ask = self.asks.get(self.id)
        if not ask or self.rented(ask):
            raise self.refusal("capacity", {})
        t, bid = ask["type"], p.get("price")
        if bid is not None and (not isinstance(bid, (int, float)) or bid <= 0 or bid > 128):
            raise bad(400, "invalid_price", f"error 400/3: price {bid}")
        if p.get("vm") and not self.ssh_keys:
            raise bad(400, "no_ssh_key_for_vm", "A virtual machine needs an SSH key.")
        if self.world.left(t.name, ask["place"]) == 0 and p.get("cancel_unavail"):
            raise bad(410, "no_such_ask", "The instance could not be started, and is cancelled.")
        self.check_room(t.name, ask["place"])
        cap = None if bid is None else round(bid * 1e6)
        self.next += 1
        m = self.made(
            Machine(self.world, str(self.next), t.name,
                    ask["place"], ask["place"], bid is not None, t.on_demand if cap is None else cap,
                    str(p.get("label") or ""), {}, cap, ask=self.id, body=p, intended="running"))
        self.world.attach("disk", f"disk-{m.id}", {"rille-label": m.name}, m.id, True, size=p.get("disk", 10))
        if cap is not None and cap < t.spot:
            m.plan = []
            m.enter("stopped", self.world.now(), "outbid")
            raise bad(400, "invalid_price", "The bid is below the minimum.", new_contract=int(m.id))
        if p.get("target_state") == "stopped":
            m.plan = [(self.world.now() + self.world.start, "stopped", "user")]
        return dict(success=True, new_contract=int(m.id))

    def find(self):
        m = self.world.machines.get(str(self.id))
        if not m or not m.visible() or m.phase == "gone":
            raise bad(404, "no_such_instance", f"error 404/3603: no_such_instance {self.id}")
        return m

    def reclaim(self, machine, in_seconds):
        machine.reclaim(in_seconds, "stopping")

    def view(self, m):
        ask = self.asks[m.facts["ask"]]
        early = m.phase == "starting" and self.world.now() - m.since < self.world.start / 3
        stopped = m.phase in ("stopping", "stopped")
        state = "stopped" if stopped else "running"
        lost = stopped and m.reason in ("reclaim", "outbid")
        return dict(
            self.offer(ask, "bid" if m.spot else "ondemand"), id=int(m.id), label=m.name,
            actual_status=None if early else STATUS[m.phase], cur_state=state, next_state=state,
            intended_status="stopped" if lost else m.facts["intended"], is_bid=m.spot, dph_total=m.price / 1e6,
            ssh_host="127.0.0.1", ssh_port=self.world.ssh_port, public_ipaddr="127.0.0.1",
            ports={"22/tcp": [dict(HostIp="0.0.0.0", HostPort=str(self.world.ssh_port))]}
            if m.phase == "running" else {}, status_msg="",
            extra_env=[[k, v] for k, v in (m.facts["body"].get("env") or {}).items()
                       ], image_uuid=m.facts["body"].get("image"), start_date=m.created, time_remaining="")

    def listAll(self, p, request):
        """The list before version 1: no filter, no pages."""
        return dict(instances=[
            self.view(m) for m in self.world.machines.values() if m.listed() and m.visible() and m.phase != "gone"
        ])

    def showInstance(self, p, request):
        return dict(instances=self.view(self.find()))

    def listInstances(self, p, request):
        limit = request.arg("limit", "25")
        if not limit.isdigit() or not 1 <= int(limit) <= 25:
            raise bad(400, "invalid_args", f"error 400/3: limit {limit}")
        try:
            filters = json.loads(request.arg("select_filters", "{}"))
        except ValueError as e:
            raise bad(400, "invalid_args", "error 400/3: select_filters") from e
        rows = [self.view(m) for m in self.world.machines.values() if m.listed() and m.visible() and m.phase != "gone"]
        rows = [
            r for r in rows if all(OPERATORS[o](r.get(f), v) for f, rule in filters.items() for o, v in rule.items())
        ]
        total = len(rows)
        rows, more = self.page(rows, request.arg("after_token"), int(limit), 25,
                               bad(400, "invalid_args", "after_token"))
        return dict(success=True, instances=rows, instances_found=len(rows), total_instances=total, next_token=more or
                    None)

    def manageInstance(self, p, request):
        m = self.find()
        if not p or set(p) - {"state", "label"} or p.get("state", "running") not in ("running", "stopped"):
            raise bad(400, "invalid_args", f"error 400/3: {p}")
        m.name = str(p.get("label", m.name))
        if p.get("state"):
            m.facts["intended"] = p["state"]
            if p["state"] == "stopped" and m.phase in ("running", "starting"):
                m.stop()
            elif p["state"] == "running" and m.phase == "stopped" and (not m.spot or m.cap >= self.price(m.type, True)):
                m.restart()
        return dict(success=True)

    def changeBid(self, p, request):
        m = self.find()
        if not isinstance(p.get("price"), (int, float)) or not m.spot:
            raise bad(400, "invalid_price", f"error 400/3: price {p.get('price')}")
        m.cap = round(p["price"] * 1e6)
        m.costs(m.cap)
        if m.phase == "stopped" and m.reason in ("reclaim", "outbid") and m.cap >= self.price(m.type, True):
            m.restart()
        return dict(success=True)

    def destroyInstance(self, p, request):
        self.find().terminate()
        return dict(success=True)

    def createSshKey(self, p, request):
        if not str(p.get("ssh_key", "")).startswith("ssh-"):
            raise bad(400, "invalid_args", "error 400/3: ssh_key")
        self.ssh_keys.append(dict(id=len(self.ssh_keys) + 1, public_key=p["ssh_key"]))
        return dict(success=True, key=self.ssh_keys[-1])

    def listSshKeys(self, p, request):
        return dict(success=True, ssh_keys=self.ssh_keys)

    def attachSshKey(self, p, request):
        self.find()
        return dict(success=True)

    def showUser(self, p, request):
        return dict(id=self.seed, email="someone@example.org", credit=100.0, balance=0.0)


if __name__ == "__main__":
    main(Vast)
