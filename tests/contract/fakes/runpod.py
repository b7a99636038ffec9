#!/usr/bin/env python3
"""RunPod: REST v2 for pods on demand, GraphQL for those and for interruptible ones, which are bid for. A bearer key; no
idempotency of any kind, no filters, no notice. Here: the wire and REST; runpod_graphql.py has the rest.
"""
import math, re

from base import Fake, Refusal, Reply, main
from rules import Rules, flatten
from runpod_graphql import GraphQL
from runpod_volumes import TYPES as VOLUME_TYPES
from runpod_volumes import NetworkVolumes
from world import Machine, Type, stamp

CENTERS = {"EU-RO-1": "RO", "US-KS-2": "US", "CA-MTL-1": "CA"}
CREATE = Rules("!name image args disk ports.N env.* registry cloud gpu.id gpu.count gpu.minCudaVersion "
               "gpu.allowedCudaVersions.N cpu.id cpu.vcpuCount dataCenterIds.N mounts.persistent.size "
               "mounts.persistent.path mounts.network.N.volumeId mounts.network.N.path globalNetworking startSsh "
               "startJupyter templateId")
STATUS = {
    "starting": "STARTING", "running": "RUNNING", "stopping": "EXITED", "stopped": "EXITED", "ending": "TERMINATED",
    "failed": "ERROR"
}
ACTIONS = {
    "STARTING": ["stop", "restart", "terminate"], "RUNNING": ["stop", "restart", "terminate"],
    "EXITED": ["start", "terminate"], "ERROR": ["terminate"], "TERMINATED": []
}
ROUTES = [("GET", r"/v2/catalog/gpus", "listGpus"), ("GET", r"/v2/catalog/datacenters", "listDataCenters"),
          ("POST", r"/v2/pods", "createPod"), ("GET", r"/v2/pods", "listPods"), ("GET", r"/v2/pods/([^/]+)", "getPod"),
          ("DELETE", r"/v2/pods/([^/]+)", "deletePod"), ("POST", r"/v2/pods/([^/]+)/action", "podAction"),
          ("GET", r"/v2/network-volumes", "listNetworkVolumes"),
          ("POST", r"/v2/network-volumes", "createNetworkVolume"),
          ("GET", r"/v2/network-volumes/([^/]+)", "getNetworkVolume"),
          ("PATCH", r"/v2/network-volumes/([^/]+)", "updateNetworkVolume"),
          ("DELETE", r"/v2/network-volumes/([^/]+)", "deleteNetworkVolume"), ("GET", r"/v2/account", "getAccount"),
          ("GET", r"/v2/account/ssh-keys", "getSshKeys"), ("PUT", r"/v2/account/ssh-keys", "putSshKeys")]
TITLES = {
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 404: "Not Found", 409: "Conflict",
    422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error"
}
NO_ROOM = "There are no longer any instances available with the requested specifications. Please refresh and try again."


def problem(status, detail, errors=None, headers=None):
    return Refusal(status, TITLES[status], detail, headers, errors=errors)


class Runpod(NetworkVolumes, GraphQL, Fake):
    name, notice, end = "runpod", 0.0, 0.0
    billing = dict(unit_s=1, minimum_s=0, from_live=False, until="ending")
    ENDS, disk_price = "deletePod", 0.1
    CREATES = ("createPod", "podFindAndDeployOnDemand", "podRentInterruptable")
    TYPES = [
        Type("NVIDIA RTX A4000", "RTX A4000", 8, 16, 6, 24, 250_000, 140_000),
        Type("NVIDIA L4", "L4", 8, 24, 12, 50, 430_000, 220_000),
        Type("NVIDIA A40", "A40", 8, 48, 9, 50, 400_000, 200_000),
        Type("NVIDIA A100 80GB PCIe", "A100 PCIe", 8, 80, 8, 117, 1_640_000, 820_000),
        Type("NVIDIA A100-SXM4-80GB", "A100 SXM", 8, 80, 16, 125, 1_890_000, 950_000),
        Type("NVIDIA H100 80GB HBM3", "H100 SXM", 8, 80, 20, 251, 2_990_000, 1_750_000),
        Type("cpu3c", "", 0, 0, 1, 2, 30_000, None)
    ]
    REFUSALS = {
        "malformed": problem(422, "request does not match the contract"), "capacity": problem(400, NO_ROOM),
        "quota": problem(402, "insufficient balance"), "throttle": problem(
            429, "rate limit exceeded",
            headers={"Retry-After": "5", "RateLimit": '"minute";r=0;t=5',
                     "RateLimit-Policy": '"minute";q=60;w=60'}), "error": problem(500, "internal server error"),
        "auth": problem(401, "unauthorized"), "spot_price": problem(400, "The bid is too low for the requested GPU.")
    }

    def prepare(self):
        self.key = "rpa_" + self.world.word(40, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
        self.world.pays_bid, self.ssh_keys = True, []

    problem = staticmethod(problem)
    gone = 0  # the status with which GraphQL, once it is ended, answers all

    def set(self, values):
        self.gone = values.pop("gone", self.gone)
        super().set(values)

    def settings(self):
        return dict(endpoints=dict(rest=self.url + "/v2", graphql=self.url + "/graphql"), regions=sorted(CENTERS),
                    image="runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404")

    def env(self):
        return dict(RUNPOD_API_KEY=self.key)

    def secrets(self):
        return [self.key]

    def parse(self, request):
        self.graphql = request.path == "/graphql"
        if self.graphql and self.gone:
            raise Refusal(self.gone, "", "")
        if self.graphql:
            return self.parse_graphql(request)
        for method, path, name in ROUTES:
            found = re.fullmatch(path, request.path)
            if found and method == request.method:
                self.id = found.group(1) if found.groups() else None
                return name, dict(request.json() or {}, **dict(request.query), **({"id": self.id} if self.id else {}))
        raise problem(404, f"no such route: {request.method} {request.path}")

    def verify(self, request):
        given = request.header("Authorization") == "Bearer " + self.key
        if not given and not (self.graphql and request.arg("api_key") == self.key):
            raise problem(401, "unauthorized")

    def render(self, r, request):
        if request.path == "/graphql" and self.gone:
            return Reply(r.status, "<html>gone</html>", "text/html")
        if request.path == "/graphql":
            return self.render_graphql(r)
        body = dict(title=r.code, status=r.status, detail=r.message)
        if r.more.get("errors"):
            body["errors"] = r.more["errors"]
        return Reply(r.status, body, "application/problem+json", r.headers)

    def run(self, operation, p, request):
        if self.graphql:
            return self.run_graphql()
        status, body = getattr(self, operation)(p, request)
        return Reply(status, b"" if body is None else body,
                     headers={"RateLimit": '"minute";r=59;t=60', "RateLimit-Policy": '"minute";q=60;w=60'})

    # REST.

    def stock_of(self, type, zone):
        left = self.world.left(type.name, zone)
        return "NONE" if left == 0 else "HIGH" if left is None or left > 8 else "LOW"

    def listGpus(self, p, request):
        known = {"include", "product", "count", "cloud", "countryCodes", "minCudaVersion", "dataCenterIds"}
        if set(dict(request.query)) - known or request.arg("product", "POD") not in ("POD", "SERVERLESS"):
            raise problem(422, "request does not match the contract", [f"query: one of {sorted(known)}"])
        rows = []
        for t in (t for t in self.types.values() if t.count):
            row = dict(
                id=t.name, name=t.gpu, manufacturer="NVIDIA", memory=t.gpu_gib, secure=True, community=True,
                price=dict(secure=t.on_demand / 1e6, community=t.on_demand * 0.8 / 1e6,
                           serverless=t.on_demand * 1.5 / 1e6), maxCount=dict(secure=t.count, community=t.count))
            if "AVAILABILITY" in request.arg("include", ""):
                countries = request.arg("countryCodes", "").split(",")
                centers = [
                    dict(id=c, name=c, availability=self.stock_of(t, c)) for c, country in CENTERS.items()
                    if countries == [""] or country in countries
                ]
                best = max((c["availability"] for c in centers), key=["NONE", "LOW", "MEDIUM", "HIGH"].index,
                           default="NONE")
                row.update(availability=best, dataCenters=centers, cudaVersions=["12.4", "12.8"])
            rows.append(row)
        return 200, dict(gpus=rows)

    def listDataCenters(self, p, request):
        known = {"include", "regions", "networkVolumeTypes", "compliance", "globalNetwork"}
        wanted = [w for w in request.arg("networkVolumeTypes", "").split(",") if w]
        if set(dict(request.query)) - known or set(wanted) - {"STANDARD", "HIGH_PERFORMANCE"}:
            raise problem(422, "request does not match the contract", [f"query: one of {sorted(known)}"])
        rows = []
        for c, country in CENTERS.items():
            row = dict(id=c, name=c, region="EUROPE" if country == "RO" else "NORTH_AMERICA", globalNetwork=True,
                       networkVolumeTypes=VOLUME_TYPES[c], compliance=["SOC_2_TYPE_2"])
            if "GPU_AVAILABILITY" in request.arg("include", ""):
                row["gpuAvailability"] = [
                    dict(id=t.name, name=t.gpu, availability=self.stock_of(t, c)) for t in self.types.values()
                    if t.count
                ]
            if set(wanted) <= set(VOLUME_TYPES[c]):
                rows.append(row)
        return 200, dict(dataCenters=rows)

    def createPod(self, p, request):
        p = request.json()
        if p is None:
            raise problem(400, "the body is no JSON object")
        self.contract(p)
        gpu = p.get("gpu")
        if (gpu is None) == ("cpu" not in p):
            raise problem(400, "exactly one of gpu or cpu must be set")
        count = gpu.get("count", 1) if gpu else p["cpu"].get("vcpuCount", 2)
        m = self.deploy(p["name"], gpu["id"] if gpu else p["cpu"].get("id", "cpu3c"), count, p.get("cloud", "SECURE"),
                        p.get("dataCenterIds") or sorted(CENTERS), None, p)
        return 201, self.pod(m)

    def contract(self, p):
        """What a JSON schema can say: 422."""
        errors, flat = [], flatten(p)
        if CREATE.unknown(flat):
            errors.append(f"$: additional properties '{CREATE.unknown(flat)}' not allowed")
        if not p.get("name") or not isinstance(p["name"], str):
            errors.append("$: missing property 'name'")
        if not p.get("image") and not p.get("templateId"):
            errors.append("$: missing property 'image'")
        if "gpu" in p and not (isinstance(p["gpu"], dict) and p["gpu"].get("id") and
                               isinstance(p["gpu"].get("count", 1), int) and p["gpu"].get("count", 1) >= 1):
            errors.append("$.gpu: missing property 'id' or a count below 1")
        if any(not re.fullmatch(r"\d{1,5}/(tcp|http|udp)", str(port)) for port in p.get("ports", [])):
            errors.append("$.ports: does not match the pattern")
        if p.get("cloud", "SECURE") not in ("SECURE", "COMMUNITY") or not isinstance(p.get("disk", 1), int):
            errors.append("$.cloud or $.disk: not of its type")
        network = (p.get("mounts") or {}).get("network") or []
        if len(network) > 1 or any(not m.get("volumeId") or not m.get("path") for m in network):
            errors.append("$.mounts.network: one entry at most, with volumeId and path")
        if any(not isinstance(v, str) for v in (p.get("env") or {}).values()):
            errors.append("$.env: values are strings")
        if errors:
            raise problem(422, "request does not match the contract", errors)

    def deploy(self, name, type, count, cloud, centers, bid, p):
        t = self.types.get(type)
        if not t or (t.count and count > t.count) or not set(centers) <= set(CENTERS):
            raise problem(400, f"no such GPU type, count or data center: {type} {count} {centers}")
        if bid is not None and bid < self.price(type, True):
            raise self.refusal("spot_price", {})
        center = next((c for c in centers if self.stock_of(t, c) != "NONE"), centers[0])
        self.check_mounts(p.get("mounts") or {}, cloud, center)
        self.check_room(type, center, count)
        each = bid if bid is not None else self.price(type, False) * (1 if cloud == "SECURE" else 0.8)
        m = self.made(
            Machine(self.world, self.world.word(14, "abcdefghijklmnopqrstuvwxyz0123456789"), type, center, center, bid
                    is not None, math.ceil(each * count), name, {}, bid, count=count, cloud=cloud, body=p))
        disk = (p.get("mounts") or {}).get("persistent") or ({"size": p["volumeInGb"]} if p.get("volumeInGb") else None)
        if disk:
            self.world.attach("disk", "volume-" + m.id, {"rille-name": name}, m.id, True, size=disk["size"])
        inside = p.get("disk") or p.get("containerDiskInGb")
        if inside:  # a part of the pod, and of its bill
            self.world.attach("disk", "container-" + m.id, {}, m.id, True, False, size=inside, inside=True)
        return m

    def reclaim(self, machine, in_seconds):
        machine.reclaim(in_seconds, "stopping")

    def find(self, id):
        m = self.world.machines.get(id)
        if not m or not m.visible() or m.phase == "gone":
            raise problem(404, "pod not found")
        return m

    def pod(self, m):
        status, body = STATUS[m.phase], m.facts["body"]
        if m.phase == "starting" and self.world.now() - m.created < self.world.start / 2:
            status = "PROVISIONING"
        running, port = m.phase == "running", self.world.ssh_port
        tcp = "22/tcp" in (body.get("ports") or [])
        actions = ["start", "terminate"] if status == "PROVISIONING" else ACTIONS[status]
        ssh = dict(
            proxy=dict(host="ssh.runpod.io", port=22, username=m.id +
                       "-64411eb2", command=f"ssh {m.id}-64411eb2@ssh.runpod.io") if m.phase != "starting" else None,
            direct=dict(host="127.0.0.1", port=port, username="root", command=f"ssh root@127.0.0.1 -p {port}")
            if running and tcp else None)
        runtime = dict(
            uptime=int(self.world.now() - m.since), gpus=[],
            ports=[dict(private=22, public=port, type="tcp", ip="127.0.0.1")] if tcp else []) if running else None
        shape = dict(gpu=dict(id=m.type, count=m.facts["count"])) if self.types[m.type].count else \
            dict(cpu=dict(id=m.type, vcpuCount=m.facts["count"], memory=2 * m.facts["count"]))
        return dict(id=m.id, name=m.name, image=body.get("image", ""), args=body.get("args", ""),
                    disk=body.get("disk", 50), ports=body.get("ports") or [], env=body.get("env") or {}, registry=None,
                    status=status, actions=actions, mounts=body.get("mounts") or {}, cloud=m.facts["cloud"],
                    dataCenterId=m.region, cudaVersion="12.8", ssh=ssh, template=None,
                    cost=m.price / 1e6 if status not in ("EXITED", "TERMINATED") else 0.0, locked=False,
                    globalNetworking=dict(enabled=False), runtime=runtime, createdAt=stamp(m.created),
                    startedAt=stamp(m.since) if running else None, **shape)

    def listed(self):
        rows = [m for m in self.world.machines.values() if m.listed() and m.visible() and m.phase != "gone"]
        return [r for row in rows for r in ([row, row] if self.duplicate else [row])]

    def listPods(self, p, request):
        return 200, dict(pods=[self.pod(m) for m in self.listed()])

    def getPod(self, p, request):
        return 200, self.pod(self.find(self.id))

    def deletePod(self, p, request):
        self.find(self.id).terminate()
        return 204, None

    def podAction(self, p, request):
        m, action = self.find(self.id), p.get("action")
        if action not in ("start", "stop", "restart", "terminate"):
            raise problem(422, "request does not match the contract",
                          ["$.action: not one of start, stop, restart, terminate"])
        if action not in self.pod(m)["actions"]:
            raise problem(409, f"pod cannot {action} while {STATUS[m.phase]}")
        if action == "start":
            self.check_room(m.type, m.zone, m.facts["count"])
        {"start": m.restart, "stop": m.stop, "restart": m.restart, "terminate": m.terminate}[action]()
        m.tick(self.world.now())
        return 200, self.pod(m) if m.phase != "gone" else {}

    def getAccount(self, p, request):
        return 200, dict(id=f"user_fake{self.seed}", email="someone@example.org")

    def getSshKeys(self, p, request):
        return 200, dict(keys=self.ssh_keys)

    def putSshKeys(self, p, request):
        if set(p) != {"keys"} or not all(isinstance(k, str) and k.startswith("ssh-") for k in p["keys"]):
            raise problem(422, "request does not match the contract", ["$.keys: a list of OpenSSH public keys"])
        self.ssh_keys = p["keys"]
        return 200, dict(keys=self.ssh_keys)


if __name__ == "__main__":
    main(Runpod)
