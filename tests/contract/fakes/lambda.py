#!/usr/bin/env python3
"""Lambda Cloud (API 1.10.0): a bearer key, or the same key as the user of basic authentication. On demand only, no
idempotency, no filters; `code` says what went wrong. `set {"launch_interval": 12}` turns its limit on launches on.
"""
import base64, re

from base import Fake, Refusal, Reply, main
from rules import Rules, flatten
from world import Machine, Type

LAUNCH = Rules(
    "!region_name !instance_type_name !ssh_key_names.N file_system_names.N file_system_mounts.N.mount_point "
    "file_system_mounts.N.file_system_id hostname name image.id image.family user_data tags.N.key tags.N.value "
    "firewall_rulesets.N.id")
ROUTES = [("GET", "/instance-types", "listInstanceTypes"), ("POST", "/instance-operations/launch", "launchInstance"),
          ("GET", "/instances", "listInstances"), ("GET", "/instances/([^/]+)", "getInstance"),
          ("POST", "/instances/([^/]+)", "renameInstance"),
          ("POST", "/instance-operations/terminate", "terminateInstance"),
          ("POST", "/instance-operations/restart", "restartInstance"), ("GET", "/ssh-keys", "listSSHKeys"),
          ("POST", "/ssh-keys", "addSSHKey"), ("DELETE", "/ssh-keys/([^/]+)", "deleteSSHKey"),
          ("GET", "/images", "listImages"), ("GET", "/file-systems", "listFileSystems")]
PLACES = {"us-west-1": "California, USA", "us-east-1": "Virginia, USA", "europe-central-1": "Germany"}
STATUS = {
    "starting": "booting", "running": "active", "ending": "terminating", "gone": "terminated", "failed": "unhealthy"
}


class Lambda(Fake):
    name, notice, end = "lambda", 0.0, 1.0
    billing = dict(unit_s=60, minimum_s=0, from_live=True, until="gone")
    ENDS = "terminateInstance"
    CREATES = ("launchInstance", )
    TYPES = [
        Type("gpu_1x_a10", "A10 (24 GB PCIe)", 1, 24, 30, 200, 750_000, None),
        Type("gpu_1x_a6000", "A6000 (48 GB)", 1, 48, 14, 100, 800_000, None),
        Type("gpu_2x_a6000", "A6000 (48 GB)", 2, 48, 28, 200, 1_600_000, None),
        Type("gpu_1x_a100_sxm4", "A100 (40 GB SXM4)", 1, 40, 30, 200, 1_290_000, None),
        Type("gpu_8x_a100_80gb_sxm4", "A100 (80 GB SXM4)", 8, 80, 240, 1800, 14_320_000, None),
        Type("gpu_1x_h100_pcie", "H100 (80 GB PCIe)", 1, 80, 26, 200, 2_490_000, None),
        Type("gpu_8x_h100_sxm5", "H100 (80 GB SXM5)", 8, 80, 208, 1800, 23_920_000, None)
    ]
    REFUSALS = {
        "malformed": Refusal(400, "global/invalid-parameters"),
        "capacity": Refusal(400, "instance-operations/launch/insufficient-capacity",
                            "Not enough capacity to fulfill launch "
                            "request.",
                            suggestion="Choose an instance type with more availability, or try again later."),
        "quota": Refusal(400, "global/quota-exceeded", "Quota exceeded.", suggestion="Contact Support to increase it."),
        "throttle": Refusal(429, "global/too-many-requests",
                            "Too many requests."), "error": Refusal(500, "global/internal-error",
                                                                    "An unexpected error occurred."),
        "auth": Refusal(401, "global/invalid-api-key", "API key was invalid, expired, or deleted.",
                        suggestion="Check your API key or create a new one, then try again.")
    }

    def prepare(self):
        self.key = "secret_rille_" + self.world.word(32) + "." + self.world.word(32, "abcdefghijkLMNOPQRST0123456789")
        self.ssh_keys = {"rille": dict(id=self.world.word(32), name="rille", public_key="ssh-ed25519 AAAA rille")}
        self.launch_interval, self.launched = 0.0, None

    def settings(self):
        return dict(endpoints={"lambda": self.url + "/api/v1"}, regions=sorted(PLACES), image="lambda-stack-24-04",
                    ssh_key="rille")

    def env(self):
        return dict(LAMBDA_API_KEY=self.key)

    def secrets(self):
        return [self.key]

    def set(self, values):
        self.launch_interval = values.pop("launch_interval", self.launch_interval)
        super().set(values)

    def parse(self, request):
        for method, path, name in ROUTES:
            found = re.fullmatch("/api/v1" + path, request.path)
            if found and method == request.method:
                self.id = found.group(1) if found.groups() else None
                return name, dict(request.json() or {}, **({"id": self.id} if self.id else {}))
        return "unknown", {}

    def verify(self, request):
        basic = "Basic " + base64.b64encode(self.key.encode() + b":").decode()
        if request.header("Authorization") not in ("Bearer " + self.key, basic):
            raise self.refusal("auth", {})

    def render(self, r, request):
        return Reply(r.status, dict(error=dict(dict(code=r.code, message=r.message), **r.more)), headers=r.headers)

    def invalid(self, message):
        return Refusal(400, "global/invalid-parameters", message)

    def absent(self, what):
        return Refusal(404, "global/object-does-not-exist", f"{what} was not found.")

    def run(self, operation, p, request):
        if operation == "unknown":
            raise Refusal(404, "global/not-found", f"There is nothing at {request.path}.")
        if request.body and request.json() is None:
            raise self.invalid("The body is no JSON object.")
        return Reply(200, dict(data=getattr(self, operation)(request.json() or {})))

    def type_view(self, t):
        return dict(name=t.name, description=f"{t.count}x {t.gpu}", gpu_description=t.gpu,
                    price_cents_per_hour=t.on_demand // 10_000, specs=dict(vcpus=t.vcpus, memory_gib=t.memory_gib,
                                                                           storage_gib=1400, gpus=t.count))

    def listInstanceTypes(self, p):
        return {
            t.name: dict(
                instance_type=self.type_view(t), regions_with_capacity_available=[
                    dict(name=r, description=d) for r, d in PLACES.items() if self.world.left(t.name, r) != 0
                ]) for t in self.types.values()
        }

    def launchInstance(self, p):
        flat = flatten(p) if p else {}
        if LAUNCH.unknown(flat) or LAUNCH.missing(flat):
            raise self.invalid(f"The field {LAUNCH.unknown(flat) or LAUNCH.missing(flat)} is unknown or missing.")
        if len(p["ssh_key_names"]) != 1 or p["ssh_key_names"][0] not in self.ssh_keys:
            raise self.invalid("ssh_key_names is exactly one name of a key that is there.")
        if p["instance_type_name"] not in self.types or p["region_name"] not in PLACES:
            raise self.absent(f"{p['instance_type_name']} in {p['region_name']}")
        if len(str(p.get("user_data", ""))) > 1 << 20 or len(str(p.get("name", ""))) > 64:
            raise self.invalid("user_data is at most 1 MB, name at most 64 characters.")
        for tag in p.get("tags") or []:
            if not re.fullmatch(r"[a-z][-a-z0-9:]{0,54}", str(tag.get("key"))) or len(str(tag.get("value", ""))) > 128:
                raise self.invalid(f"The tag {tag} is not valid.")
        now = self.world.now()
        if self.launched and now - self.launched < self.launch_interval:
            raise self.refusal("throttle", {})
        self.launched = now
        self.check_room(p["instance_type_name"], p["region_name"])
        m = self.made(
            Machine(self.world, self.world.word(32), p["instance_type_name"], p["region_name"], p["region_name"], False,
                    self.price(p["instance_type_name"], False), p.get("name", ""),
                    {t["key"]: t.get("value", "") for t in p.get("tags") or []}, None, body=p))
        return dict(instance_ids=[m.id])

    def find(self, id):
        m = self.world.machines.get(id)
        if not m or not m.visible() or m.reason == "vanished" or (m.ended and self.world.now() - m.ended > 3600):
            raise self.absent("Instance")
        return m

    def view(self, m):
        up = m.phase == "running"
        act = dict(available=up)
        status = "preempted" if m.reason == "reclaim" and m.phase in ("ending", "gone") else STATUS[m.phase]
        return dict(
            id=m.id, name=m.name, ip="127.0.0.1" if up else None, private_ip="10.19.0.5" if up else None, status=status,
            ssh_key_names=m.facts["body"]["ssh_key_names"], file_system_names=[],
            region=dict(name=m.region, description=PLACES[m.region]), instance_type=self.type_view(self.types[m.type]),
            hostname=m.facts["body"].get("hostname"), jupyter_token=None, jupyter_url=None, is_reserved=False,
            actions=dict(migrate=act, rebuild=act, restart=act, cold_reboot=act,
                         terminate=dict(available=True)), tags=[dict(key=k, value=v) for k, v in m.tags.items()])

    def listInstances(self, p):
        rows = [m for m in self.world.machines.values() if m.listed() and m.visible() and m.phase != "gone"]
        return [self.view(r) for row in rows for r in ([row, row] if self.duplicate else [row])]

    def getInstance(self, p):
        return self.view(self.find(self.id))

    def renameInstance(self, p):
        m = self.find(self.id)
        m.name = str(p.get("name", ""))
        return self.view(m)

    def terminateInstance(self, p):
        if set(p) != {"instance_ids"} or not isinstance(p["instance_ids"], list):
            raise self.invalid("instance_ids is a list.")
        machines = [self.find(i) for i in p["instance_ids"]]
        for m in machines:
            m.terminate()
        return dict(terminated_instances=[self.view(m) for m in machines])

    def restartInstance(self, p):
        machines = [self.find(i) for i in p.get("instance_ids", [])]
        return dict(restarted_instances=[self.view(m) for m in machines])

    def listSSHKeys(self, p):
        return list(self.ssh_keys.values())

    def addSSHKey(self, p):
        if not p.get("name") or not str(p.get("public_key", "ssh-")).startswith("ssh-"):
            raise self.invalid("A key has a name and an OpenSSH public key.")
        if p["name"] in self.ssh_keys:
            raise Refusal(400, "global/duplicate", f"The key {p['name']} is there already.")
        key = self.world.attach("key", self.world.word(32), {}, None, False, False)
        self.ssh_keys[p["name"]] = dict(id=key.id, name=p["name"], public_key=p.get("public_key", "ssh-ed25519 AAAA"))
        return self.ssh_keys[p["name"]]

    def deleteSSHKey(self, p):
        name = next((n for n, k in self.ssh_keys.items() if k["id"] == self.id), None)
        if not name:
            raise self.absent("SSH key")
        del self.ssh_keys[name]
        if self.id in self.world.things:
            self.world.things[self.id].ended = self.world.now()
        return {}

    def listImages(self, p):
        return [
            dict(id=f"image-{r}", name="Lambda Stack 24.04", family="lambda-stack-24-04", version="24.4.1",
                 architecture="x86_64", region=dict(name=r, description=d)) for r, d in PLACES.items()
        ]

    def listFileSystems(self, p):
        return []


if __name__ == "__main__":
    main(Lambda)
