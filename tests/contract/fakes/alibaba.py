#!/usr/bin/env python3
"""Alibaba Cloud ECS: RPC JSON, version 2014-05-26, signed by ACS3-HMAC-SHA256 or by the older signature version 1.0.
Here: the wire and instances; alibaba_more.py has the catalogue, prices and the rest. One thing is stricter than the
provider, which ignores unknown parameters: the fake refuses them.
"""
import json, re

import signatures
from alibaba_disks import Disks
from alibaba_more import RULES, ZONES, More
from alibaba_roles import Roles
from base import Fake, Refusal, Reply, main, unbase64
from world import Machine, Type, stamp, unstamp

VERSIONS = {  # of STS and RAM
    "GetCallerIdentity": "2015-04-01", "AssumeRole": "2015-04-01", "AssumeRoleWithOIDC": "2015-04-01",
    "ListAccessKeys": "2015-05-01"
}
COMMON = {
    "Action", "Version", "Format", "AccessKeyId", "SignatureMethod", "SignatureVersion", "SignatureNonce",
    "SignatureType", "Timestamp", "Signature", "SecurityToken"
}
IMAGE, GROUP = "ubuntu_22_04_x64_20G_alibase_20260901.vhd", "sg-bp1fake0000000000000"
SWITCHES = {
    "vsw-bp1fake000000000000i": "cn-hangzhou-i", "vsw-bp1fake000000000000j": "cn-hangzhou-j",
    "vsw-uf6fake000000000000m": "cn-shanghai-m", "vsw-t4nfake000000000000c": "ap-southeast-1c"
}
STATUS = {
    "starting": "Starting", "running": "Running", "ending": "Stopping", "stopping": "Stopping", "stopped": "Stopped"
}
TIME = "%Y-%m-%dT%H:%MZ"


def tags_of(p):
    tags = {}
    for n in range(1, 22):
        key, value = p.get(f"Tag.{n}.Key"), p.get(f"Tag.{n}.Value", "")
        if key is None:
            if f"Tag.{n}.Value" in p:
                raise Refusal(400, "MissingTagKey", "The tag key is required.")
            continue
        if not 1 <= len(key) <= 128 or key.startswith(("aliyun", "acs:")) or "http://" in key or "https://" in key:
            raise Refusal(400, "InvalidTagKey.Malformed", f"The specified Tag.n.Key is not valid: {key}")
        if len(value) > 128:
            raise Refusal(400, "InvalidTagValue.Malformed", "The specified Tag.n.Value is not valid.")
        if n > 20:
            raise Refusal(400, "InvalidTagCount", "The specified tags are beyond the permitted range.")
        if key in tags:
            raise Refusal(400, "Duplicate.TagKey", f"The Tag.{n}.Key contain duplicate key.")
        tags[key] = value
    return tags


class Alibaba(More, Disks, Roles, Fake):
    name, currency, notice = "alibaba", "CNY", 300.0
    billing = dict(unit_s=1, minimum_s=0, from_live=False, until="gone")
    ENDS, disk_price = "DeleteInstances", 1.0
    CREATES = ("RunInstances", )
    REGIONS = {"cn-hangzhou": 1.0, "cn-shanghai": 1.0, "ap-southeast-1": 1.3}
    TYPES = [
        Type("ecs.gn6i-c4g1.xlarge", "NVIDIA T4", 1, 16, 4, 15, 11_630_000, 1_163_000),
        Type("ecs.gn6i-c24g1.12xlarge", "NVIDIA T4", 2, 16, 48, 186, 33_600_000, 3_360_000),
        Type("ecs.gn7i-c8g1.2xlarge", "NVIDIA A10", 1, 24, 8, 30, 9_500_000, 1_900_000),
        Type("ecs.gn7i-c32g1.16xlarge", "NVIDIA A10", 2, 24, 64, 376, 25_300_000, 5_060_000),
        Type("ecs.gn7e-c16g1.4xlarge", "NVIDIA A100 80G", 1, 80, 16, 125, 34_742_000, 10_422_000),
        Type("ecs.gn7e-c16g1.32xlarge", "NVIDIA A100 80G", 8, 80, 128, 1000, 277_936_000, 83_380_000),
        Type("ecs.ebmgn8v.48xlarge", "NVIDIA H100", 8, 80, 192, 1024, 494_000_000, 148_000_000,
             zones=["cn-hangzhou-i"]),
        Type("ecs.c7.large", "", 0, 0, 2, 4, 393_000, 78_000),
        Type("ecs.c8y.large", "", 0, 0, 2, 4, 300_000, 60_000, architecture="ARM")
    ]
    REFUSALS = {
        "malformed": Refusal(400, "InvalidParameter"),
        "capacity": Refusal(
            403, "OperationDenied.NoStock", "The requested resource is sold out in the specified zone; "
            "try other types of resources or other regions and zones."),
        "quota": Refusal(403, "QuotaExceed.ElasticQuota", "The number of vCPUs has exceeded the quota in the zone."),
        "throttle": Refusal(400, "Throttling.User", "Request was denied due to user flow control.",
                            {"x-ratelimit-user": "Limit:1|Remain:0|TimeLeft:1000"}),
        "error": Refusal(500, "InternalError", "The request processing has failed due to some unknown error."),
        "auth": Refusal(400, "InvalidSecurityToken.Expired", "Specified SecurityToken is expired."),
        "spot_price": Refusal(403, "InvalidSpotPriceLimit.LowerThanPublicPrice",
                              "The specified SpotPriceLimit is lower "
                              "than the public price."),
    }

    def prepare(self):
        letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ123456789"
        word = self.world.word
        self.key, self.secret, self.key2 = "LTAI5t" + word(18, letters), word(30, letters), "STS." + word(25, letters)
        self.secret2, self.session, self.nonces = word(44, letters), word(200, letters), set()
        self.keys = {self.key: (self.secret, None), self.key2: (self.secret2, self.session)}
        self.named = {}
        self.prepare_lending()

    def settings(self):
        endpoints = dict(ecs=self.url, sts=self.url, ram=self.url, metadata=self.url + "/_metadata")
        return dict(endpoints=endpoints, regions=sorted(ZONES), image=IMAGE,
                    subnet="vsw-bp1fake000000000000i", security_group=GROUP, zone="cn-hangzhou-i")

    def env(self):
        return dict(ALIBABA_CLOUD_ACCESS_KEY_ID=self.key, ALIBABA_CLOUD_ACCESS_KEY_SECRET=self.secret,
                    ALIBABA_CLOUD_REGION_ID="cn-hangzhou")

    def temporary(self):
        return dict(ALIBABA_CLOUD_ACCESS_KEY_ID=self.key2, ALIBABA_CLOUD_ACCESS_KEY_SECRET=self.secret2,
                    ALIBABA_CLOUD_SECURITY_TOKEN=self.session)

    def secrets(self):
        return [self.secret, self.secret2, self.session]

    def parse(self, request):
        p = dict(request.query)
        if request.header("Content-Type").startswith("application/x-www-form-urlencoded"):
            p.update(request.form())
        p = {k: v.lower() if v in ("True", "False") else v for k, v in p.items()}  # the older SDK says Python's words
        return request.header("x-acs-action") or p.get("Action", ""), {k: v for k, v in p.items() if k not in COMMON}

    def needs(self, operation, parameters):
        if operation in VERSIONS:
            return ["ram:ListAccessKeys"] if operation == "ListAccessKeys" else []
        return ["ecs:" + operation] + ["ecs:TagResources"] * (
            operation in ("RunInstances", "CreateDisk") and "Tag.1.Key" in parameters)

    def token_of(self, parameters, request):
        return parameters.get("ClientToken", "")

    def verify(self, request):
        authorization = request.header("Authorization")
        if request.arg("Action") == "AssumeRoleWithOIDC":  # an unsigned call
            self.version = request.arg("Version")
            return
        if authorization.startswith("ACS3-HMAC-SHA256"):
            given = re.fullmatch(r"ACS3-HMAC-SHA256 Credential=([^,]+),SignedHeaders=([^,]+),Signature=([0-9a-f]{64})",
                                 authorization)
            if not given:
                raise Refusal(400, "InvalidAuthorization", "The Authorization header is not of the form of ACS3.")
            key, signed, signature = given.groups()
            secret = self.secret_of(key, request.header("x-acs-security-token"))
            names = signed.split(";")
            needed = {
                "host", "x-acs-action", "x-acs-version", "x-acs-date", "x-acs-signature-nonce", "x-acs-content-sha256"
            }
            needed |= {
                k.lower() for k in request.headers
                if k.lower().startswith("x-acs-") or (k.lower() == "content-type" and request.body)
            }
            payload = signatures.sha256(request.body)
            if names != sorted(names) or not needed <= set(names) or request.header("x-acs-content-sha256") != payload:
                raise self.wrong(f"headers that must be signed, sorted: {sorted(needed)}; payload {payload}")
            text, right = signatures.alibaba_acs3(request.method, request.path, request.raw_query,
                                                  request.headers.items(), names, payload, secret)
            self.fresh(request.header("x-acs-date"), request.header("x-acs-signature-nonce"))
            self.version = request.header("x-acs-version")
        else:
            form = request.form() if request.header("Content-Type").startswith("application/x-www-form") else []
            p = dict(request.query + form)
            for name in ("AccessKeyId", "Signature", "SignatureNonce", "Timestamp"):
                if not p.get(name):
                    raise Refusal(400, f"Missing{name}", f"{name} is mandatory for this action.")
            if p.get("SignatureMethod") != "HMAC-SHA1" or p.get("SignatureVersion") != "1.0":
                raise Refusal(400, "InvalidParameter.SignatureMethod", "Only HMAC-SHA1 of version 1.0.")
            secret = self.secret_of(p["AccessKeyId"], p.get("SecurityToken", ""))
            text, right = signatures.alibaba_rpc(request.method, request.query + form, secret)
            signature, self.version = p["Signature"], p.get("Version")
            self.fresh(p["Timestamp"], p["SignatureNonce"])
        if right != signature:
            raise self.wrong(text)

    def wrong(self, text):
        return Refusal(400, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation. server "
                       f"string to sign is:{text}")

    def secret_of(self, key, session):
        if key not in self.keys:
            raise Refusal(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
        secret, needed = self.keys[key]
        if needed and session != needed:
            raise Refusal(400, "InvalidSecurityToken.Malformed", "Specified SecurityToken is malformed.")
        return secret

    def fresh(self, date, nonce):
        at = unstamp(date)
        if at is None:
            raise Refusal(400, "InvalidTimeStamp.Format", "Specified time stamp or date value is not well formatted.")
        if abs(self.world.wall() - at) > 900:
            raise Refusal(400, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.")
        if not nonce or nonce in self.nonces:
            raise Refusal(400, "SignatureNonceUsed", "Specified signature nonce was used already.")
        self.nonces.add(nonce)

    def render(self, r, request):
        return Reply(
            r.status,
            dict(RequestId=self.request_id.upper(), HostId="ecs.aliyuncs.com", Code=r.code, Message=r.message,
                 Recommend="https://api.aliyun.com/troubleshoot"), "application/json;charset=utf-8", r.headers)

    def run(self, operation, p, request):
        if operation not in RULES:
            raise Refusal(404, "InvalidAction.NotFound",
                          "Specified api is not found, please check your url and method.")
        if self.version != VERSIONS.get(operation, "2014-05-26"):
            raise Refusal(400, "InvalidVersion", "Specified parameter Version is not valid.")
        rules = RULES[operation]
        if rules.missing(p):
            name = rules.missing(p)
            raise Refusal(
                400, "MissingParameter" if name != "RegionId" else "MissingParameter.RegionId",
                f'The input parameter "{name}" that is mandatory for processing this request is not supplied.')
        if rules.unknown(p):
            raise Refusal(400, "InvalidParameter", f"The specified parameter {rules.unknown(p)} is not known.")
        if p.get("RegionId", "cn-hangzhou") not in ZONES:
            raise Refusal(404, "InvalidRegionId.NotFound", "The specified RegionId does not exist.")
        self.region, self.dry = p.get("RegionId", "cn-hangzhou"), p.get("DryRun") == "true"
        reply = getattr(self, operation)(p)
        return Reply(200, dict(reply, RequestId=self.request_id.upper()), "application/json;charset=utf-8")

    def effect(self):
        if self.dry:
            raise Refusal(400, "DryRunOperation", "Request validation has been passed with DryRun flag set.")

    # Instances.

    def RunInstances(self, p):
        token = p.get("ClientToken", "")
        if len(token) > 64 or not token.isascii():
            raise Refusal(400, "InvalidParameter.ClientToken", "At most 64 ASCII characters.")
        same = json.dumps({k: v for k, v in p.items() if k not in ("ClientToken", "DryRun")}, sort_keys=True)
        known = self.world.recall(self.region, token) if token else None
        if known:
            if known[0] != same:
                raise Refusal(400, "IdempotentParameterMismatch", "The specified parameter has changed while using an "
                              "already used clientToken.")
            return known[1]
        zone, spot, cap = self.checked(p)
        count, type = int(p.get("Amount", "1")), p["InstanceType"]
        self.check_room(type, zone, count)
        self.effect()
        ids = [self.launch(p, type, zone, spot, cap).id for _ in range(count)]
        reply = dict(InstanceIdSets=dict(InstanceIdSet=ids), OrderId="",
                     TradePrice=self.price(type, spot, self.region) / 1e6)
        if token:
            self.world.remember(self.region, token, same, reply)
        return reply

    def checked(self, p):
        if p["InstanceType"] not in self.types:
            raise Refusal(404, "InvalidInstanceType.NotFound", "The specified InstanceType does not exist.")
        if p["ImageId"] != IMAGE:
            raise Refusal(404, "InvalidImageId.NotFound", "The specified ImageId does not exist.")
        if p.get("SecurityGroupId", p.get("SecurityGroupIds.1")) != GROUP:
            raise Refusal(404, "InvalidSecurityGroupId.NotFound", "The specified SecurityGroupId does not exist.")
        switch = SWITCHES.get(p.get("VSwitchId"))
        zone = p.get("ZoneId") or switch
        if not switch or switch != zone or zone not in ZONES[self.region]:
            raise Refusal(404, "InvalidVSwitchId.NotFound", "The VSwitchId provided does not exist in our records.")
        if zone not in self.types[p["InstanceType"]].facts.get("zones", [zone]):
            raise Refusal(403, "Zone.NotOnSale", "The resource in the specified zone is no longer available for sale.")
        if "KeyPairName" in p and (self.region, p["KeyPairName"]) not in self.named:
            raise Refusal(404, "InvalidKeyPairName.NotFound",
                          "The specified KeyPairName does not exist in our records.")
        if not p.get("Amount", "1").isdigit() or not 1 <= int(p.get("Amount", "1")) <= 100:
            raise Refusal(400, "InvalidAmount", "The specified Amount is not valid.")
        plain = unbase64(p.get("UserData", ""))
        if plain is None:
            raise Refusal(400, "InvalidUserData.Base64FormatInvalid", "The specified UserData is not base64.")
        if len(plain) > 32768:
            raise Refusal(400, "InvalidUserData.SizeExceeded", "The specified UserData exceeds the size limit.")
        until = unstamp(p.get("AutoReleaseTime")) if "AutoReleaseTime" in p else self.world.wall() + 1800
        if until is None:
            raise Refusal(400, "InvalidAutoReleaseTime.Malformed", "The specified AutoReleaseTime is not valid.")
        if until < self.world.wall() + 1740:
            raise Refusal(400, "InvalidAutoReleaseTime.Expired", "It must be at least 30 minutes from now.")
        return (zone, *self.market(p))

    def market(self, p):
        strategy, limit = p.get("SpotStrategy", "NoSpot"), p.get("SpotPriceLimit")
        if p.get("InstanceChargeType", "PostPaid") != "PostPaid":
            raise Refusal(400, "InvalidInstanceChargeType.ValueNotSupported", "Only PostPaid is sold here.")
        if strategy not in ("NoSpot", "SpotWithPriceLimit", "SpotAsPriceGo") or p.get("SpotDuration", "1") not in "01":
            raise Refusal(400, "InvalidSpotStrategy", "The specified SpotStrategy or SpotDuration is not valid.")
        if strategy != "SpotWithPriceLimit":
            return strategy != "NoSpot", None
        if not re.fullmatch(r"\d+(\.\d{1,3})?", limit or ""):
            raise Refusal(400, "InvalidSpotPriceLimit",
                          "The specified SpotPriceLimit is not valid: at most three decimals.")
        if round(float(limit) * 1e6) < self.price(p["InstanceType"], True, self.region):
            raise self.refusal("spot_price", {})
        return True, round(float(limit) * 1e6)

    def launch(self, p, type, zone, spot, cap):
        number = len(self.world.machines) + 4
        m = self.made(
            Machine(self.world, "i-bp1" + self.world.word(17, "abcdefghijklmnopqrstuvwxyz0123456789"),
                    type, self.region, zone, spot, self.price(type, spot, self.region), p.get("InstanceName", ""),
                    tags_of(p), cap, image=p["ImageId"], key=p.get("KeyPairName", ""),
                    private=f"10.0.{number // 250}.{number % 250}", stop=p.get("SpotInterruptionBehavior") == "Stop",
                    public=f"127.0.0.{number % 250}" if int(p.get("InternetMaxBandwidthOut", "0")) else None,
                    strategy=p.get("SpotStrategy", "NoSpot"), user_data=p.get("UserData", "")))
        if "AutoReleaseTime" in p:
            # Whole minutes, as its SDK documents.
            m.expire(self.world.of_wall(unstamp(p["AutoReleaseTime"]) // 60 * 60))
        disks = [("system", p.get("SystemDisk.Size", "40"), True)]
        disks += [("data", p.get(f"DataDisk.{n}.Size", "40"), p.get(f"DataDisk.{n}.DeleteWithInstance",
                                                                    "true") == "true") for n in range(1, 17) if any(
                                                                        k.startswith(f"DataDisk.{n}.") for k in p)]
        for kind, size, dies in disks:
            self.world.attach("disk", "d-bp1" + self.world.word(17), tags_of(p), m.id, dies, region=self.region,
                              size=int(size), type=kind, zone=zone)
        return m

    def reclaim(self, machine, in_seconds):
        machine.reclaim(in_seconds, "stopping" if machine.facts["stop"] else "ending")

    def here(self, id):
        m = self.world.machines.get(id)
        if not m or m.region != self.region or not m.visible() or m.phase == "gone":
            raise Refusal(404, "InvalidInstanceId.NotFound", "The specified InstanceId does not exist.")
        return m

    def ids(self, p):
        if "InstanceId" in p:
            return [p["InstanceId"]]
        return [p[k] for k in sorted((k for k in p if k.startswith("InstanceId.")), key=lambda k: int(k[11:]))]

    def DeleteInstances(self, p):
        machines = [self.here(i) for i in self.ids(p)]
        for m in machines:
            if m.phase == "starting":
                raise Refusal(403, "IncorrectInstanceStatus.Initializing", "The specified instance status does not "
                              "support this operation.")
            if m.phase in ("running", "stopping") and "true" not in (p.get("Force"), p.get("ForceStop")):
                raise Refusal(403, "IncorrectInstanceStatus",
                              "The current status of the resource does not support this "
                              "operation.")
        self.effect()
        for m in machines:
            m.terminate()
        return {}

    DeleteInstance = DeleteInstances

    def StopInstances(self, p):
        machines = [self.here(i) for i in self.ids(p)]
        if any(m.phase not in ("running", "stopped") for m in machines):
            raise Refusal(403, "IncorrectInstanceStatus", "The current status of the resource does not support it.")
        self.effect()
        for m in machines:
            if m.phase == "running":
                m.stop()
        return {}

    def StartInstances(self, p):
        machines = [self.here(i) for i in self.ids(p)]
        if any(m.phase not in ("running", "stopped") for m in machines):
            raise Refusal(403, "IncorrectInstanceStatus", "The current status of the resource does not support it.")
        self.effect()
        for m in machines:
            if m.phase == "stopped":
                m.restart()
        return {}

    StopInstance, StartInstance = StopInstances, StartInstances

    def instance(self, m):
        t, locks = self.types[m.type], [dict(LockReason="Recycling")] if m.noticed() else []
        return dict(
            InstanceId=m.id, InstanceName=m.name or m.id, Status=STATUS[m.phase], RegionId=m.region, ZoneId=m.zone,
            InstanceType=m.type, ImageId=m.facts["image"], InstanceNetworkType="vpc", Cpu=t.vcpus,
            Memory=t.memory_gib * 1024, GPUAmount=t.count, GPUSpec=t.gpu, HostName="", OSType="linux",
            PublicIpAddress=dict(IpAddress=[m.facts["public"]] if m.facts["public"] and m.phase == "running" else []),
            EipAddress=dict(IpAddress=""), KeyPairName=m.facts["key"],
            VpcAttributes=dict(VpcId="vpc-bp1fake", PrivateIpAddress=dict(IpAddress=[m.facts["private"]])),
            SpotStrategy=m.facts["strategy"], SpotPriceLimit=(m.cap or 0) / 1e6, InstanceChargeType="PostPaid",
            OperationLocks=dict(LockReason=locks), CreationTime=stamp(m.created, TIME),
            StartTime=stamp(m.created, TIME), AutoReleaseTime=stamp(m.expires_at, TIME) if m.expires_at else "",
            Tags=dict(Tag=[dict(TagKey=k, TagValue=v) for k, v in m.tags.items()]))

    def DescribeInstances(self, p):
        wanted = None
        if "InstanceIds" in p:
            try:
                wanted = json.loads(p["InstanceIds"])
            except ValueError:
                wanted = {}
            if not isinstance(wanted, list) or len(wanted) > 100:
                raise Refusal(400, "InvalidInstanceIds.Malformed",
                              "The specified InstanceIds is not a JSON array of at "
                              "most 100.")
        tags = {
            k: (v if f"Tag.{n}.Value" in p else None) for n in range(1, 21)
            for k, v in [(p.get(f"Tag.{n}.Key"), p.get(f"Tag.{n}.Value"))] if k
        }
        rows = [
            m for m in self.world.machines.values() if m.region == self.region and m.phase != "gone" and m.visible() and
            (m.id in wanted if wanted is not None else m.listed()) and all(
                k in m.tags and v in (None, m.tags[k])
                for k, v in tags.items()) and p.get("ZoneId", m.zone) == m.zone and p.get("Status", STATUS[m.phase]) ==
            STATUS[m.phase] and p.get("InstanceName", m.name) == m.name and p.get("InstanceType", m.type) == m.type
        ]
        rows, cursor, total = self.rows_of(p, rows)
        return dict(Instances=dict(Instance=[self.instance(m) for m in rows]), NextToken=cursor, TotalCount=total,
                    PageSize=int(p.get("PageSize", 10)), PageNumber=int(p.get("PageNumber", 1)))


if __name__ == "__main__":
    main(Alibaba)
