#!/usr/bin/env python3
"""Huawei Cloud ECS with IAM projects, BSS prices, disks (EVS) and addresses (EIP) on one port; SDK-HMAC-SHA256.
Creating and deleting are jobs: stock runs out late, in the job. What a client token with another request does, and the
codes of jobs that fail, are nowhere said: here the first answer comes again, and it is Ecs.0219.
"""
import re

import signatures
from base import Fake, Refusal, Reply, main, unbase64
from huawei_disks import Disks
from huawei_more import GROUP, IMAGE, SERVER, SUBNET, VPC, ZONES, More
from huawei_roles import Roles
from rules import flatten
from world import Machine, Type, stamp, unstamp

STATES = {
    "starting": "BUILD", "running": "ACTIVE", "stopping": "ACTIVE", "stopped": "SHUTOFF", "ending": "ACTIVE",
    "failed": "ERROR"
}
P = "(?P<project>[0-9a-f]{32})"
ROUTES = [
    (m, re.compile(p), n) for m, p, n in
    [("GET", "/v3/projects", "listProjects"), ("POST", "/v3[.]0/OS-AUTH/id-token/tokens", "createTokenById"),
     ("POST", "/v3[.]0/OS-CREDENTIAL/securitytokens", "createTemporaryKey"),
     ("GET", "/v3[.]0/OS-CREDENTIAL/credentials/(?P<id>[^/]+)", "showCredential"),
     ("POST", "/v2/bills/ratings/on-demand-resources",
      "ratePrices"), ("POST", "/v2/bills/ratings/period-resources/subscribe-rate",
                                               "rateYears"), ("GET", f"/v1/{P}/cloudservers/flavors", "listFlavors"),
     ("GET", f"/v1/{P}/cloudservers/flavor-sell-policies",
      "listSellPolicies"), ("GET", f"/v1/{P}/cloudservers/limits",
                            "showLimits"), ("GET", f"/v1/{P}/cloudservers/resize_flavors",
                                            "listFlavors"), ("POST", f"/v1(?:[.]1)?/{P}/cloudservers", "createServers"),
     ("GET", f"/v1/{P}/jobs/(?P<id>[^/]+)",
      "showJob"), ("GET", f"/v1(?:[.]1)?/{P}/cloudservers/detail",
                   "listServers"), ("POST", f"/v1/{P}/cloudservers/delete", "deleteServers"),
     ("POST", f"/v1/{P}/cloudservers/resource_instances/action",
      "listServersByTag"), ("GET", f"/v1/{P}/cloudservers/(?P<id>[^/]+)",
                            "showServer"), ("POST", f"/v1/{P}/cloudservers/action", "actOnServers"),
     ("POST", f"/v1(?:[.]1)?/{P}/cloudservers/(?P<id>[^/]+)/resize",
      "resizeServer"), ("POST", f"/v2[.]1/{P}/os-keypairs",
                        "createKeypair"), ("DELETE", f"/v2[.]1/{P}/os-keypairs/(?P<id>[^/]+)",
                                           "deleteKeypair"), ("GET", f"/v2/{P}/cloudvolumes/detail", "listVolumes"),
     ("POST", f"/v2[.]1/{P}/cloudvolumes", "createVolume"),
     ("POST", f"/v1/{P}/cloudservers/(?P<id>[^/]+)/attachvolume", "attachVolume"),
     ("DELETE", f"/v2/{P}/cloudvolumes/(?P<id>[^/]+)",
      "deleteVolume"), ("GET", f"/v1/{P}/publicips",
                        "listAddresses"), ("DELETE", f"/v1/{P}/publicips/(?P<id>[^/]+)", "deleteAddress")]
]


class Huawei(More, Disks, Roles, Fake):
    name, currency, notice, end = "huawei", "CNY", 300.0, 1.0
    billing = dict(unit_s=1, minimum_s=0, from_live=False, until="gone")
    ENDS, disk_price = "deleteServers", 1.0
    CREATES, LATE = ("createServers", ), ("capacity", )
    REGIONS = {"cn-north-4": 1.0, "cn-east-3": 1.0, "ap-southeast-3": 1.3}
    TYPES = [
        Type("pi2.2xlarge.4", "T4", 1, 16, 8, 32, 10_760_000, 2_152_000),
        Type("pi2.4xlarge.4", "T4", 2, 16, 16, 64, 21_520_000, 4_304_000),
        Type("pi3.4xlarge.4", "A10", 1, 24, 16, 64, 13_400_000, 2_680_000),
        Type("pi3.8xlarge.4", "A10", 2, 24, 32, 128, 26_800_000, 5_360_000),
        Type("p3.2xlarge.8", "A100", 1, 40, 8, 64, 30_120_000, 9_036_000),
        Type("p3.16xlarge.8", "A100", 8, 40, 64, 512, 240_960_000, 72_288_000),
        Type("p5.32xlarge.16", "H100", 8, 80, 128, 2048, 480_000_000, None, zones=["cn-north-4a"]),
        Type("c7.large.2", "", 0, 0, 2, 4, 390_000, 78_000, terse=True),
        Type("s2.large.2", "", 0, 0, 2, 4, 310_000, 62_000, status="abandon"),
        Type("kc1.large.2", "", 0, 0, 2, 4, 300_000, 60_000, architecture="arm64")
    ]
    REFUSALS = {
        "malformed": Refusal(400, "Ecs.0005"),
        "capacity": Refusal(200, "Ecs.0219", "The flavor is sold out: no valid host was found."),
        "quota": Refusal(403, "Ecs.0001", "Insufficient ECS quota."),
        "throttle": Refusal(429, "APIGW.0308", "The throttling threshold has been reached: policy user over ratelimit"),
        "error": Refusal(500, "Ecs.0000", "Request error. Try again later or contact customer service."),
        "auth": Refusal(401, "APIGW.0301", "Incorrect IAM authentication information: x-security-token expired"),
        "spot_price": Refusal(400, "Ecs.0005", "spotPrice is lower than the current price."),
    }

    NEEDS = {
        "listProjects": "iam:projects:listProjects", "ratePrices": "bss:discount:view",
        "rateYears": "bss:discount:view",
        "listFlavors": "ecs:cloudServerFlavors:get", "showLimits": "ecs:cloudServerQuotas:get",
        "createServers": "ecs:cloudServers:create evs:volumes:create vpc:publicIps:create",
        "listServers": "ecs:cloudServers:list", "showServer": "ecs:cloudServers:get",
        "deleteServers": "ecs:cloudServers:delete evs:volumes:delete vpc:publicIps:delete",
        "resizeServer": "ecs:cloudServers:resize", "listVolumes": "evs:volumes:list",
        "deleteVolume": "evs:volumes:delete", "createVolume": "evs:volumes:create",
        "attachVolume": "ecs:cloudServers:attach evs:volumes:use"
    }

    def prepare(self):
        letters, word = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", self.world.word
        self.key, self.secret, self.key2 = word(20, letters), word(40,
                                                                   letters + "abcdefghijk"), "HST" + word(17, letters)
        self.secret2, self.session = word(40, letters + "abcdefghijk"), word(240, letters + "abcdefghijk")
        self.keys = {self.key: (self.secret, None), self.key2: (self.secret2, self.session)}
        self.projects = {r: word(32) for r in ZONES}
        self.jobs, self.named, self.world.fade = {}, {}, 60.0
        self.prepare_lending()
        self.iam_token = word(200)
        self.lent.append(self.iam_token)

    def settings(self):
        return dict(
            endpoints={s: self.url
                       for s in ("ecs", "iam", "bss", "evs", "eip")} | dict(
                           metadata=self.url + "/_metadata", bss_intl=self.url.replace("127.0.0.1", "localhost")),
            regions=sorted(ZONES), zone="cn-north-4a", image=IMAGE, vpc=VPC, subnet=SUBNET, security_group=GROUP,
            project=self.projects["cn-north-4"])

    def env(self):
        return dict(HUAWEICLOUD_SDK_AK=self.key, HUAWEICLOUD_SDK_SK=self.secret,
                    HUAWEICLOUD_SDK_PROJECT_ID=self.projects["cn-north-4"])

    def temporary(self):
        return dict(HUAWEICLOUD_SDK_AK=self.key2, HUAWEICLOUD_SDK_SK=self.secret2,
                    HUAWEICLOUD_SDK_SECURITY_TOKEN=self.session)

    def secrets(self):
        return [self.secret, self.secret2, self.session]

    def parse(self, request):
        for method, path, name in ROUTES:
            self.place = path.fullmatch(request.path)
            if self.place and method == request.method:
                return name, dict(request.json() or {}, **({"query": dict(request.query)} if request.query else {}))
        return "unknown", {}

    def token_of(self, parameters, request):
        return request.header("X-Client-Token")

    def verify(self, request):
        if request.path in ("/v3.0/OS-AUTH/id-token/tokens", "/v3.0/OS-CREDENTIAL/securitytokens"):
            return  # a token in the body identifies the caller
        bad = lambda why: Refusal(401, "APIGW.0301", "Incorrect IAM authentication information: " + why)
        given = re.fullmatch(r"SDK-HMAC-SHA256 Access=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                             request.header("Authorization"))
        if not given:
            raise bad("Get secretKey failed, the Authorization header is not of its form")
        key, signed, signature = given.groups()
        if key not in self.keys:
            raise bad(f"Get secretKey failed,ak:{key},err:ak not exist")
        secret, session = self.keys[key]
        if session and request.header("X-Security-Token") != session:
            raise bad("x-security-token is wrong")
        names, date = signed.split(";"), request.header("X-Sdk-Date")
        needed = {"host", "x-sdk-date"} | {
            k.lower() for k in request.headers if k.lower() in ("x-project-id", "x-security-token", "x-client-token")
        }
        if names != sorted(names) or not needed <= set(names):
            raise bad(f"verify aksk signature fail, headers to be signed: {sorted(needed)}")
        at = unstamp(date, "%Y%m%dT%H%M%SZ")
        if at is None or abs(self.world.wall() - at) > 900:
            raise bad(f"verify aksk signature fail, signature expired, X-Sdk-Date: {date}")
        unsigned = request.header("X-Sdk-Content-Sha256") == "UNSIGNED-PAYLOAD"
        payload = "UNSIGNED-PAYLOAD" if unsigned else signatures.sha256(request.body)
        if signatures.huawei(request.method, request.path, request.raw_query, request.headers.items(), names, payload,
                             date, secret)[1] != signature:
            raise bad("verify aksk signature fail")

    def render(self, r, request):
        if r.code.startswith("APIGW."):
            return Reply(r.status, dict(error_msg=r.message, error_code=r.code, request_id=self.request_id),
                         headers=r.headers)
        return Reply(r.status, dict(error=dict(code=r.code, message=r.message)), headers=r.headers)

    def bad(self, message, code="Ecs.0005"):
        return Refusal(400, code, message)

    def run(self, operation, p, request):
        if operation == "unknown":
            raise Refusal(404, "APIGW.0101", "The API does not exist or has not been published in the environment")
        project = self.place.groupdict().get("project")
        if project:
            self.region = next((r for r, p in self.projects.items() if p == project), None)
            if not self.region or request.header("X-Project-Id", project) != project:
                raise Refusal(403, "APIGW.0302", "The project is not that of the access key.")
        if request.body and request.json() is None:
            raise self.bad("The request body is not a JSON object.")
        status, body = getattr(self, operation)(request.json() or {}, request)
        headers = {"X-Subject-Token": self.iam_token} if operation == "createTokenById" else {}
        return Reply(status, b"" if body is None else body, headers=headers)

    # Servers.

    def createServers(self, p, request):
        token = request.header("X-Client-Token")
        known = self.world.recall(self.region, token) if token else None
        if known:
            return 200, known[1]
        flat = flatten(p)
        if SERVER.unknown(flat):
            raise self.bad(f"The parameter {SERVER.unknown(flat)} is not known.")
        if SERVER.missing(flat):
            raise self.bad(f"The parameter {SERVER.missing(flat)} is missing.")
        s = p["server"]
        zone, spot, cap = self.checked(s)
        type, count = s["flavorRef"], s.get("count", 1)
        if self.world.quota is not None and len(self.world.alive()) + count > self.world.quota:
            raise self.refusal("quota", {})
        fault = self.take(("capacity", ), "createServers", request)
        left = self.world.left(type, zone)
        none = fault or (left is not None and left < count)
        if p.get("dry_run"):
            return 204, None
        self.world.taken(type, zone, 0 if none else count)
        machines = [self.launch(s, type, zone, spot, cap, none) for _ in range(count)]
        reply = dict(job_id=self.job("createServer", machines,
                                     self.refusal("capacity", fault or {}) if none else None),
                     serverIds=[m.id for m in machines])
        if token:
            self.world.remember(self.region, token, "", reply)
        return 200, reply

    def checked(self, s):
        extra = s.get("extendparam") or {}
        type, zone = s["flavorRef"], s.get("availability_zone") or ZONES[self.region][0]
        if type not in self.types:
            raise self.bad(f"Flavor {type} could not be found.", "Ecs.0102")
        if self.types[type].facts.get("status", "normal") != "normal":
            raise self.bad(f"Flavor {type} is not sold any more.", "Ecs.0026")
        if zone not in ZONES[self.region] or zone not in self.types[type].facts.get("zones", [zone]):
            raise self.bad(f"The availability zone {zone} does not sell {type}.", "Ecs.0026")
        if s["imageRef"] != IMAGE or s["vpcid"] != VPC or any(n.get("subnet_id") != SUBNET for n in s["nics"]):
            raise self.bad("The image, the VPC or the subnet does not exist.", "Ecs.0111")
        if any(g.get("id") != GROUP for g in s.get("security_groups") or []):
            raise self.bad("The security group does not exist.", "Ecs.0024")
        if s.get("key_name") and s["key_name"] not in self.named:
            raise self.bad(f"Key pair {s['key_name']} does not exist.", "Ecs.0217")
        data = unbase64(s.get("user_data", ""))
        if data is None or len(data) > 32768:
            raise self.bad("user_data is not base64, or more than 32 KB.")
        if not re.fullmatch(r"[\w.-]{1,64}", s["name"]) or not 1 <= s.get("count", 1) <= 500:
            raise self.bad("The name or the count is not valid.")
        for tag in s.get("server_tags") or []:
            key, value = tag.get("key", ""), tag.get("value", "")  # as PostPaidServerTag of the SDK has them
            if not re.fullmatch(r"[^\x00-\x1f=*<>\\,|/]{1,36}", key) or not re.fullmatch(
                    r"[^\x00-\x1f=*<>\\,|]{0,43}", value):
                raise self.bad(f"The tag {tag} is not valid.")
        if "auto_terminate_time" in s:
            at = unstamp(s["auto_terminate_time"])
            if at is None or at < self.world.wall() + 1740:
                raise self.bad("auto_terminate_time is a time in UTC, at least half an hour from now.")
        if str(extra.get("chargingMode", 0)) != "0":
            raise self.bad("Only pay-per-use is sold here.")
        return (zone, *self.market(type, extra))

    def market(self, type, extra):
        if not extra.get("marketType"):
            return False, None
        if extra["marketType"] != "spot" or self.types[type].spot is None or str(
                extra.get("support_auto_recovery")) == "true":
            raise self.bad(f"{type} is not sold so, or auto recovery is on.")
        cap = extra.get("spotPrice")
        if cap is not None and (not re.fullmatch(r"\d+(\.\d+)?", str(cap)) or
                                round(float(cap) * 1e6) < self.price(type, True, self.region)):
            raise self.refusal("spot_price", {})
        return True, self.price(type, False, self.region) if cap is None else round(float(cap) * 1e6)

    def launch(self, s, type, zone, spot, cap, none):
        tags = {t["key"]: t.get("value", "") for t in s.get("server_tags") or []}
        tags.update(dict(t.split(".", 1) for t in s.get("tags") or [] if "." in t))
        m = self.made(
            Machine(self.world, self.world.uuid(), type, self.region, zone, spot, self.price(type, spot, self.region),
                    s["name"], tags, cap, body=s))
        if none:
            m.segments, m.plan = [], [(m.created + self.world.start, "failed", "capacity")]
            if isinstance(none, dict) and none.get("leaves"):  # the job had made it before it failed
                self.volume(s, None, 0, s["root_volume"].get("size", 40), True)
            return m
        if "auto_terminate_time" in s:
            m.expire(self.world.of_wall(unstamp(s["auto_terminate_time"])))
        self.volume(s, m.id, 0, s["root_volume"].get("size", 40), True)
        for n, disk in enumerate(s.get("data_volumes") or [], 1):
            self.volume(s, m.id, n, disk.get("size", 10), False)
        ip = (s.get("publicip") or {})
        if ip:
            self.world.attach("address", self.world.uuid(), {}, m.id, bool(ip.get("delete_on_termination")),
                              region=self.region)
        return m

    def volume(self, s, machine, number, size, dies_with):
        """A server's tags are not its disks'; their names begin with its own."""
        self.world.attach("disk", self.world.uuid(), {}, machine, dies_with, region=self.region, size=size,
                          zone=s.get("availability_zone", ""), data=bool(number),
                          name=f"{s['name']}-volume-{number:04}")

    def job(self, kind, machines, error=None):
        id = self.world.word(32)
        self.jobs[id] = dict(id=id, kind=kind, machines=machines, error=error, begun=self.world.now())
        return id

    def showJob(self, p, request):
        j = self.jobs.get(self.place["id"])
        if not j or self.world.now() - j["begun"] > 86400:
            raise Refusal(404, "Common.0011", "The job does not exist.")
        busy = {"createServer": "starting", "deleteServer": "ending"}.get(j["kind"])
        parts, states = [], []
        for m in j["machines"]:
            state = "RUNNING" if m.phase == busy else "FAIL" if j["error"] else "SUCCESS"
            states.append(state)
            failed = dict(error_code=j["error"].code, fail_reason=j["error"].message) if state == "FAIL" else {}
            parts.append(
                dict(status=state, entities=dict(server_id=m.id), job_type=j["kind"], job_id=j["id"] + m.id[:4],
                     begin_time=stamp(j["begun"]), **dict(dict(error_code=None, fail_reason=None), **failed)))
        whole = next((s for s in ("RUNNING", "FAIL") if s in states), "SUCCESS")
        error = j["error"] if whole == "FAIL" else None
        return 200, dict(status=whole, job_id=j["id"], job_type=j["kind"], begin_time=stamp(j["begun"]), end_time=None,
                         entities=dict(sub_jobs_total=len(parts), sub_jobs=parts),
                         error_code=error.code if error else None, fail_reason=error.message if error else None)

    def here(self, id):
        m = self.world.machines.get(id)
        if not m or m.region != self.region or not m.visible() or m.phase == "gone":
            raise Refusal(404, "Ecs.0114", f"Instance[{id}] could not be found.")
        return m

    def server(self, m):
        s, t = m.facts["body"], self.types[m.type]
        addresses = [{"addr": "192.168.0.9", "version": "4", "OS-EXT-IPS:type": "fixed"}]
        if s.get("publicip") and m.phase == "running":
            addresses.append({"addr": "127.0.0.1", "version": "4", "OS-EXT-IPS:type": "floating"})
        gpus = [dict(name=t.gpu, count=t.count, memory_mb=t.gpu_gib * 1024)] if t.count else []
        task = {"starting": "spawning", "ending": "deleting", "stopping": "powering-off"}.get(m.phase)
        return {
            "id": m.id, "name": m.name, "status": STATES[m.phase], "created": stamp(m.created),
            "addresses": {VPC: addresses} if m.phase != "starting" else {},
            "flavor": dict(id=m.type, name=m.type, vcpus=str(t.vcpus), ram=str(t.memory_gib * 1024), disk="0",
                           gpus=gpus), "tags": [f"{k}={v}" for k, v in m.tags.items()],
            "metadata": dict(s.get("metadata") or {}, **{"charging_mode": "2" if m.spot else "0", "vpc_id": VPC}),
            "image": dict(id=IMAGE), "key_name": s.get("key_name"), "OS-EXT-STS:task_state": task,
            "OS-EXT-STS:vm_state": {"BUILD": "building", "ACTIVE": "active",
                                    "SHUTOFF": "stopped"}.get(STATES[m.phase],
                                                              "error"), "OS-EXT-AZ:availability_zone": m.zone,
            "fault": dict(code=500, message=self.REFUSALS["capacity"].message) if m.phase == "failed" else None,
            "os-extended-volumes:volumes_attached": [dict(id=t.id, bootIndex=None if t.facts.get("data") else "0",
                                                          delete_on_termination=str(t.dies_with).lower())
                                                     for t in self.disks_of(m)],
            "auto_terminate_time": stamp(m.expires_at) if m.expires_at else ""
        }

    def showServer(self, p, request):
        return 200, dict(server=self.server(self.here(self.place["id"])))

    def mine(self):
        return [
            m for m in self.world.machines.values()
            if m.region == self.region and m.listed() and m.visible() and m.phase != "gone"
        ]

    def listServers(self, p, request):
        """`offset` is the number of the page, from 1."""
        rows = self.mine()
        for term in filter(None, request.arg("tags", "").split(",")):
            key, _, value = term.partition("=")
            rows = [m for m in rows if m.tags.get(key) == value]
        if request.arg("status"):
            rows = [m for m in rows if STATES[m.phase] == request.arg("status")]
        if request.arg("name"):
            rows = [m for m in rows if request.arg("name") in m.name]
        rows = [r for row in rows for r in ([row, row] if self.duplicate else [row])]
        limit = min(int(request.arg("limit", "25")), self.world.page_size or 1000)
        start = max(0, int(request.arg("offset", "1")) - 1) * limit
        return 200, dict(servers=[self.server(m) for m in rows[start:start + limit]], count=len(rows))

    def listServersByTag(self, p, request):
        """Here `offset` counts rows."""
        if p.get("action") not in ("filter",
                                   "count") or set(p) - {"action", "tags", "limit", "offset", "matches", "not_tags"}:
            raise self.bad("The action is filter or count.")
        rows = [
            m for m in self.mine() if all(
                m.tags.get(t.get("key")) in (t.get("values") or [m.tags.get(t.get("key"))]) and t.get("key") in m.tags
                for t in p.get("tags") or [])
        ]
        rows = [r for row in rows for r in ([row, row] if self.duplicate else [row])]
        limit, start = min(int(p.get("limit", "1000")), self.world.page_size or 1000), int(p.get("offset", "0"))
        shown = rows[start:start + limit] if p["action"] == "filter" else []
        return 200, dict(
            total_count=len(rows), resources=[
                dict(resource_id=m.id, resource_name=m.name, resource_detail="",
                     tags=[dict(key=k, value=v) for k, v in m.tags.items()]) for m in shown
            ])

    def deleteServers(self, p, request):
        if set(p) - {"servers", "delete_publicip", "delete_volume"} or not p.get("servers"):
            raise self.bad("The parameter servers is missing, or another is not known.")
        machines = [self.here(s.get("id")) for s in p["servers"]]
        for m in machines:
            for thing in self.world.things.values():
                if thing.machine == m.id:  # a system disk ends with its server; of data disks, delete_volume says it
                    thing.dies_with = thing.dies_with or bool(
                        p.get("delete_volume" if thing.kind == "disk" else "delete_publicip"))
            m.terminate()
        return 200, dict(job_id=self.job("deleteServer", machines))

    def actOnServers(self, p, request):
        action = next((a for a in ("os-stop", "os-start") if a in p), None)
        if not action:
            raise self.bad("The action is os-stop or os-start.")
        machines = [self.here(s.get("id")) for s in p[action].get("servers", [])]
        for m in machines:
            if action == "os-stop" and m.phase == "running":
                m.stop()
            elif action == "os-start" and m.phase == "stopped":
                m.restart()
        return 200, dict(job_id=self.job("act", machines))

    def resizeServer(self, p, request):
        m, r = self.here(self.place["id"]), p.get("resize") or {}
        if m.spot or r.get("flavorRef") not in self.types:
            raise self.bad("A spot server cannot be resized; others to a flavor that exists.", "Ecs.0039")
        if m.phase != "stopped" and r.get("mode") != "withStopServer":
            raise self.bad(f"The status {STATES[m.phase]} does not allow it.", "Ecs.0032")
        m.type = r["flavorRef"]
        m.costs(self.price(m.type, False, m.region))
        return 200, dict(job_id=self.job("resizeServer", [m]))


if __name__ == "__main__":
    main(Huawei)
