#!/usr/bin/env python3
"""Tencent Cloud CVM 2017-03-12 with disks (CBS), STS and CAM: TC3-HMAC-SHA256, JSON, errors with HTTP status 200.
Here: the wire and instances; tencent_more.py has the catalogue and the rest. What a client token with another request
does is nowhere said: here the first answer comes again.
"""
import re

import signatures
from base import Fake, Refusal, Reply, main, unbase64
from rules import flatten
from tencent_disks import Disks
from tencent_more import IMAGE, GROUP, RULES, SUBNETS, ZONES, More
from tencent_roles import Roles
from world import Machine, Type, stamp, unstamp

STATES = {
    "starting": "PENDING", "running": "RUNNING", "stopping": "STOPPING", "stopped": "STOPPED", "ending": "TERMINATING",
    "failed": "LAUNCH_FAILED"
}
VERSIONS = {"cvm": "2017-03-12", "cbs": "2017-03-12", "sts": "2018-08-13", "cam": "2019-01-16"}


class Tencent(More, Disks, Roles, Fake):
    name, currency, notice = "tencent", "CNY", 120.0
    billing = dict(unit_s=1, minimum_s=0, from_live=False, until="ending")
    ENDS, disk_price = "TerminateInstances", 1.0
    CREATES = ("RunInstances", )
    REGIONS = {"ap-guangzhou": 1.0, "ap-shanghai": 1.0, "ap-singapore": 1.4}
    TYPES = [
        Type("GN7.2XLARGE32", "NVIDIA T4", 1, 16, 8, 32, 8_680_000, 1_740_000),
        Type("GN7.10XLARGE160", "NVIDIA T4", 2, 16, 40, 160, 20_100_000, 4_020_000),
        Type("PNV4.7XLARGE116", "NVIDIA A10", 1, 24, 28, 116, 12_900_000, 2_580_000),
        Type("PNV4.14XLARGE232", "NVIDIA A10", 2, 24, 56, 232, 25_800_000, 5_160_000),
        Type("GT4.4XLARGE96", "NVIDIA A100", 1, 40, 16, 96, 28_640_000, 8_592_000),
        Type("GT4.41XLARGE948", "NVIDIA A100", 8, 40, 164, 948, 240_580_000, 72_174_000),
        Type("HCCPNV6.96XLARGE2304", "NVIDIA H100", 8, 80, 384, 2304, 512_000_000, None, zones=["ap-guangzhou-6"]),
        Type("S6.MEDIUM4", "", 0, 0, 2, 4, 290_000, 58_000),
        Type("SR1.MEDIUM4", "", 0, 0, 2, 4, 200_000, 40_000)
    ]
    REFUSALS = {
        "malformed": Refusal(200, "InvalidParameter"),
        "capacity": Refusal(200, "ResourceInsufficient.SpecifiedInstanceType", "The specified type of instance is "
                            "understocked."),
        "quota": Refusal(200, "LimitExceeded.InstanceQuota", "The quota for instances is exceeded."),
        "throttle": Refusal(
            200, "RequestLimitExceeded", "Your current request times equals to `11` in a second, which "
            "exceeds the frequency limit `10` for a second. Please reduce the frequency of calls."),
        "error": Refusal(200, "InternalError", "An internal error has occurred."),
        "auth": Refusal(200, "AuthFailure.TokenFailure",
                        "The provided credentials are expired or could not be validated."),
        "spot_price": Refusal(200, "InvalidParameterValue.InsufficientPrice",
                              "The price is lower than the spot price."),
    }

    def prepare(self):
        letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ123456789"
        word = self.world.word
        self.key, self.secret, self.key2 = "AKID" + word(32, letters), word(32, letters), "AKID" + word(60, letters)
        self.secret2, self.session = word(44, letters), word(200, letters)
        self.keys = {self.key: (self.secret, None), self.key2: (self.secret2, self.session)}
        self.named = {}
        self.prepare_lending()

    def settings(self):
        return dict(endpoints={s: self.url for s in VERSIONS} | dict(metadata=self.url + "/_metadata"), image=IMAGE,
                    regions=sorted(ZONES), zone="ap-guangzhou-6", vpc="vpc-fake0001", subnet="subnet-fake0006",
                    security_group=GROUP)

    def env(self):
        return dict(TENCENTCLOUD_SECRET_ID=self.key, TENCENTCLOUD_SECRET_KEY=self.secret,
                    TENCENTCLOUD_REGION="ap-guangzhou")

    def temporary(self):
        return dict(TENCENTCLOUD_SECRET_ID=self.key2, TENCENTCLOUD_SECRET_KEY=self.secret2,
                    TENCENTCLOUD_TOKEN=self.session)

    def secrets(self):
        return [self.secret, self.secret2, self.session]

    def parse(self, request):
        operation = request.header("X-TC-Action")
        p = request.json() if request.method == "POST" else dict(request.query)
        self.service = (re.search(r"/([a-z]+)/tc3_request", request.header("Authorization")) or [0, "cvm"])[1]
        if operation == "AssumeRoleWithWebIdentity":
            self.service = "sts"
        return operation, {} if p is None else p

    def needs(self, operation, parameters):
        return [] if self.service == "sts" else [f"{self.service}:{operation}"]  # allowed to every user

    def token_of(self, parameters, request):
        return str(parameters.get("ClientToken", ""))

    def verify(self, request):
        if self.service == "sts" and request.header("X-TC-Action") == "AssumeRoleWithWebIdentity":  # it is unsigned
            if request.header("Authorization") != "SKIP" or not request.header("X-TC-Timestamp").isdigit():
                raise Refusal(200, "AuthFailure.InvalidAuthorization", "It is not signed: Authorization is SKIP.")
            return
        given = re.fullmatch(
            r"TC3-HMAC-SHA256 Credential=([^/]+)/(\d{4}-\d\d-\d\d)/([a-z]+)/tc3_request, ?"
            r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", request.header("Authorization"))
        if not given:
            raise Refusal(200, "AuthFailure.InvalidAuthorization",
                          "The Authorization header is not of the form of TC3.")
        key, date, service, signed, signature = given.groups()
        if key not in self.keys:
            raise Refusal(200, "AuthFailure.SecretIdNotFound", "The SecretId is not found. Please ensure that your "
                          "SecretId is correct.")
        secret, session = self.keys[key]
        if session and request.header("X-TC-Token") != session:
            raise Refusal(200, "AuthFailure.TokenFailure", "Token verification failed.")
        sent = request.header("X-TC-Timestamp")
        if not sent.isdigit() or abs(self.world.wall() - int(sent)) > 300:
            raise Refusal(
                200, "AuthFailure.SignatureExpire", "The provided credentials could not be validated because of "
                "exceeding request size limit or expired signature.")
        names = signed.split(";")
        if names != sorted(names) or not {"content-type", "host"} <= set(names) or stamp(int(sent), "%Y-%m-%d") != date:
            raise Refusal(
                200, "AuthFailure.SignatureFailure", "content-type and host must be signed, and the date of the "
                "scope be that of X-TC-Timestamp in UTC.")
        hashed = signatures.sha256("UNSIGNED-PAYLOAD" if request.header("X-TC-Content-SHA256") ==
                                   "UNSIGNED-PAYLOAD" else request.body)
        right = signatures.tencent_tc3(request.method, request.raw_query if request.method == "GET" else "",
                                       request.headers.items(), names, hashed, sent, date, service, secret)[1]
        if right != signature:
            raise Refusal(200, "AuthFailure.SignatureFailure",
                          "The provided credentials could not be validated. Please "
                          "check your signature is correct.")

    def render(self, r, request):
        return Reply(r.status,
                     dict(Response=dict(Error=dict(Code=r.code, Message=r.message), RequestId=self.request_id)),
                     headers=r.headers)

    def run(self, operation, p, request):
        if request.method == "POST" and request.json() is None or request.method not in ("GET", "POST"):
            raise Refusal(200, "InvalidParameter", "The body is not a JSON object.")
        if not operation:
            raise Refusal(200, "MissingParameter", "The request header `X-TC-Action` is missing.")
        if request.header("X-TC-Version") != VERSIONS.get(self.service):
            raise Refusal(200, "NoSuchVersion", f"The version `{request.header('X-TC-Version')}` does not exist.")
        rules = RULES.get((self.service, operation))
        if not rules:
            raise Refusal(200, "InvalidAction", f"The API `{operation}` does not exist.")
        self.region = request.header("X-TC-Region")
        if self.region not in ZONES and self.service not in ("sts", "cam"):
            raise Refusal(200, "UnsupportedRegion" if self.region else "MissingParameter", f"X-TC-Region {self.region}")
        flat = flatten(p) if p else {}
        if rules.unknown(flat):
            raise Refusal(200, "UnknownParameter", f"The parameter `{rules.unknown(flat)}` is not recognized.")
        if rules.missing(flat):
            raise Refusal(200, "MissingParameter",
                          f"The request is missing a required parameter `{rules.missing(flat)}`.")
        reply = getattr(self, operation)(p)
        return Reply(200, dict(Response=dict(reply, RequestId=self.request_id)))

    # Instances.

    def RunInstances(self, p):
        token = p.get("ClientToken", "")
        if len(token) > 64 or not token.isascii():
            raise Refusal(200, "InvalidClientToken.TooLong", "The specified ClientToken exceeds 64 bytes.")
        known = self.world.recall(self.region, token) if token else None
        if known:
            return dict(InstanceIdSet=known[1])
        self.checked(p)
        spot, cap = self.market(p)
        type, zone, count = p["InstanceType"], p["Placement"]["Zone"], p.get("InstanceCount", 1)
        self.check_room(type, zone, count)
        if p.get("DryRun"):
            raise Refusal(200, "DryRunOperation", "The DryRun operation would have succeeded.")
        ids = [self.launch(p, type, zone, spot, cap) for _ in range(count)]
        if token:
            self.world.remember(self.region, token, "", ids)
        return dict(InstanceIdSet=ids)

    def checked(self, p):
        bad = lambda code, value: Refusal(200, code, f"The value `{value}` is not valid.")
        type, zone = p["InstanceType"], p["Placement"]["Zone"]
        if zone not in ZONES[self.region]:
            raise bad("InvalidZone.MismatchRegion", zone)
        if type not in self.types or zone not in self.types[type].facts.get("zones", [zone]):
            raise bad("InvalidInstanceType.ValueNotSupported", type)
        if p["ImageId"] != IMAGE:
            raise bad("InvalidImageId.NotFound", p["ImageId"])
        net = p.get("VirtualPrivateCloud")
        if net and SUBNETS.get(net.get("SubnetId")) != zone:
            raise bad("InvalidParameterValue.SubnetNotExist", net.get("SubnetId"))
        for group in p.get("SecurityGroupIds", []):
            if group != GROUP:
                raise bad("InvalidSecurityGroupId.NotFound", group)
        for key in p.get("LoginSettings", {}).get("KeyIds", []):
            if key not in self.named:
                raise bad("InvalidKeyPairId.NotFound", key)
        plain = unbase64(p.get("UserData", ""))
        if plain is None or len(plain) > 16384:
            raise bad("InvalidParameterValue.InvalidUserDataFormat", "UserData")
        if not isinstance(p.get("InstanceCount", 1), int) or not 1 <= p.get("InstanceCount", 1) <= 100:
            raise bad("InvalidParameterValue.Range", p.get("InstanceCount"))
        tags = [t for s in p.get("TagSpecification", []) for t in s.get("Tags", [])]
        if any(s.get("ResourceType") != "instance" for s in p.get("TagSpecification", [])) or \
                any(not 1 <= len(t.get("Key", "")) <= 127 or len(t.get("Value", "")) > 255 for t in tags):
            raise bad("InvalidParameterValue.TagKeyNotFound", tags)
        timer = p.get("ActionTimer")
        if timer:
            at = unstamp(timer.get("ActionTime"))
            if timer.get("TimerAction") != "TerminateInstances" or at is None or at < self.world.wall() + 290:
                raise bad("InvalidParameterValue", "ActionTimer")

    def market(self, p):
        charge, options = p.get("InstanceChargeType", "POSTPAID_BY_HOUR"), p.get("InstanceMarketOptions", {})
        if charge not in ("POSTPAID_BY_HOUR", "SPOTPAID"):
            raise Refusal(200, "InvalidInstanceChargeType", f"The charge type `{charge}` is not sold here.")
        if charge != "SPOTPAID":
            return False, None
        if self.types[p["InstanceType"]].spot is None:
            raise Refusal(200, "UnsupportedOperation.NoInstanceTypeSupportSpot",
                          "The type is not sold as a spot instance.")
        cap = options.get("SpotOptions", {}).get("MaxPrice")
        if options.get("MarketType",
                       "spot") != "spot" or (cap is not None and
                                             not (isinstance(cap, str) and re.fullmatch(r"\d+(\.\d+)?", cap))):
            raise Refusal(200, "InvalidParameterValue", f"InstanceMarketOptions {options}")
        if cap is not None and round(float(cap) * 1e6) < self.price(p["InstanceType"], True, self.region):
            raise self.refusal("spot_price", {})
        return True, None if cap is None else round(float(cap) * 1e6)

    def launch(self, p, type, zone, spot, cap):
        tags = {t["Key"]: t.get("Value", "") for s in p.get("TagSpecification", []) for t in s.get("Tags", [])}
        number = len(self.world.machines) + 4
        public = p.get("InternetAccessible", {}).get("PublicIpAssigned")
        m = self.made(
            Machine(self.world,
                    "ins-" + self.world.word(8, "abcdefghijklmnopqrstuvwxyz0123456789"), type, self.region, zone, spot,
                    self.price(type, spot,
                               self.region), p.get("InstanceName",
                                                   ""), tags, cap, private=f"172.16.{number // 250}.{number % 250}",
                    keys=p.get("LoginSettings", {}).get("KeyIds",
                                                        []), public=f"127.0.0.{number % 250}" if public else None,
                    operation="RunInstances", user_data=p.get("UserData", "")))
        if "ActionTimer" in p:
            m.expire(self.world.of_wall(unstamp(p["ActionTimer"]["ActionTime"])))
        disks = [dict(p.get("SystemDisk", {}), usage="SYSTEM_DISK", DeleteWithInstance=True)]
        disks += [dict(d, usage="DATA_DISK") for d in p.get("DataDisks", [])]
        for d in disks:
            self.world.attach("disk", "disk-" + self.world.word(8), tags, m.id, d.get("DeleteWithInstance", True),
                              region=self.region, size=d.get("DiskSize", 50), usage=d["usage"], zone=zone)
        return m.id

    def here(self, id):
        m = self.world.machines.get(id)
        if not re.fullmatch("ins-[a-z0-9]{8}", str(id)):
            raise Refusal(200, "InvalidInstanceId.Malformed", f"The instance ID `{id}` is malformed.")
        if not m or m.region != self.region or not m.visible() or m.phase == "gone":
            raise Refusal(200, "InvalidInstanceId.NotFound", f"The instance ID `{id}` is not found.")
        return m

    def act(self, p, allowed, do):
        if len(p["InstanceIds"]) > 100:
            raise Refusal(200, "InvalidParameterValue.LimitExceeded", "At most 100 instances.")
        machines = [self.here(i) for i in p["InstanceIds"]]
        for m in machines:
            if m.phase not in allowed:
                name = {
                    "starting": "Pending", "ending": "Terminating", "running": "Running", "stopped": "Stopped",
                    "stopping": "Stopping"
                }.get(m.phase, "Pending")
                raise Refusal(200, f"UnsupportedOperation.InstanceState{name}", f"`{m.id}` is {STATES[m.phase]}.")
        for m in machines:
            do(m)
        return {}

    def TerminateInstances(self, p):
        return self.act(p, ("running", "stopping", "stopped", "failed"), lambda m: m.terminate())

    def StopInstances(self, p):
        return self.act(p, ("running", ), lambda m: m.stop())

    def StartInstances(self, p):
        return self.act(p, ("stopped", ), lambda m: m.restart())

    def ResetInstancesType(self, p):
        if p["InstanceType"] not in self.types:
            raise Refusal(200, "InvalidInstanceType.ValueNotSupported", f"The type `{p['InstanceType']}` is not sold.")

        def change(m):
            if m.spot:
                raise Refusal(200, "UnsupportedOperation.InstanceChargeType", "A spot instance cannot be resized.")
            m.type = p["InstanceType"]
            m.costs(self.price(m.type, False, m.region))

        return self.act(p, ("stopped", "running") if p.get("ForceStop") else ("stopped", ), change)

    def instance(self, m):
        t = self.types[m.type]
        gpu = dict(GPUInfo=dict(GPUCount=float(t.count), GPUId=[f"GPU{n}" for n in range(t.count)], GPUType=t.gpu))
        state = {"starting": "OPERATING", "ending": "OPERATING", "failed": "FAILED"}.get(m.phase, "SUCCESS")
        return dict(InstanceId=m.id, InstanceState=STATES[m.phase], InstanceName=m.name, InstanceType=m.type,
                    CPU=t.vcpus, Memory=t.memory_gib, Placement=dict(Zone=m.zone, ProjectId=0), RestrictState="NORMAL",
                    InstanceChargeType="SPOTPAID" if m.spot else "POSTPAID_BY_HOUR", ImageId=IMAGE, PrivateIpAddresses=[
                        m.facts["private"]
                    ], PublicIpAddresses=[m.facts["public"]] if m.facts["public"] and m.phase == "running" else None,
                    Tags=[dict(Key=k, Value=v) for k, v in m.tags.items()], LatestOperation=m.facts["operation"],
                    LatestOperationState=state, LatestOperationErrorMsg="sold out" if state == "FAILED" else None,
                    LoginSettings=dict(KeyIds=m.facts["keys"]), DefaultLoginUser="ubuntu", DefaultLoginPort=22,
                    CreatedTime=stamp(m.created), IsolatedSource="NOTISOLATED", Uuid=m.id, **(gpu if t.count else {}))

    def kept(self, p, rows):
        if "Filters" in p and p.get("InstanceIds"):
            raise Refusal(200, "InvalidParameterCombination", "InstanceIds and Filters exclude each other.")
        if p.get("InstanceIds"):
            for id in p["InstanceIds"]:
                if not re.fullmatch("ins-[a-z0-9]{8}", str(id)):
                    raise Refusal(200, "InvalidInstanceId.Malformed", f"The instance ID `{id}` is malformed.")
            rows = [m for m in rows if m.id in p["InstanceIds"]]
        else:
            rows = [m for m in rows if m.listed()]
        if len(p.get("Filters", [])) > 10 or any(len(f.get("Values", [])) > 5 for f in p.get("Filters", [])):
            raise Refusal(200, "InvalidFilterValue.LimitExceeded", "At most 10 filters of at most 5 values.")
        for f in p.get("Filters", []):
            name = f.get("Name", "")
            of = {
                "tag-key": lambda m: list(m.tags), "tag-value": lambda m: list(m.tags.values()),
                "instance-state": lambda m: [STATES[m.phase]], "zone": lambda m: [m.zone],
                "instance-name": lambda m: [m.name], "instance-id": lambda m: [m.id],
                "instance-type": lambda m: [m.type],
                "instance-charge-type": lambda m: ["SPOTPAID" if m.spot else "POSTPAID_BY_HOUR"]
            }.get(name)
            if name.startswith("tag:"):
                of = lambda m, key=name[4:]: [m.tags[key]] if key in m.tags else []
            if of is None:
                raise Refusal(200, "InvalidFilter", f"The filter `{name}` is not known.")
            rows = [m for m in rows if set(of(m)) & set(f.get("Values", []))]
        return rows

    def part(self, p, rows):
        """Offset and Limit, by which Tencent pages; at most 100 rows and, by `set`, page_size."""
        rows = [r for row in rows for r in ([row, row] if self.duplicate else [row])]
        limit = p.get("Limit", 20)
        if not isinstance(limit, int) or not 1 <= limit <= 100:
            raise Refusal(200, "InvalidParameterValue.Range", f"The value `{limit}` of Limit is not in [1, 100].")
        limit = min(limit, self.world.page_size or limit)
        return rows[p.get("Offset", 0):p.get("Offset", 0) + limit], len(rows)

    def DescribeInstances(self, p):
        rows = [
            m for m in self.world.machines.values() if m.region == self.region and m.phase != "gone" and m.visible()
        ]
        rows, total = self.part(p, self.kept(p, rows))
        return dict(TotalCount=total, InstanceSet=[self.instance(m) for m in rows])

    def DescribeInstancesStatus(self, p):
        rows = [
            m for m in self.world.machines.values() if m.region == self.region and m.phase != "gone" and m.visible()
        ]
        rows, total = self.part(p, self.kept(p, rows))
        return dict(TotalCount=total,
                    InstanceStatusSet=[dict(InstanceId=m.id, InstanceState=STATES[m.phase]) for m in rows])

    def metadata(self, request, machine, path):
        """URL/_metadata/INSTANCE stands for http://metadata.tencentyun.com; its times are of UTC+8."""
        if path == "/latest/meta-data/spot/termination-time" and machine.noticed():
            return Reply(200, stamp(machine.reclaim_at + 8 * 3600, "%Y-%m-%d %H:%M:%S"), "text/plain")
        if path == "/latest/meta-data/instance-id":
            return Reply(200, machine.id, "text/plain")
        return Reply(404, "", "text/plain")


if __name__ == "__main__":
    main(Tencent)
