"""What alibaba.py has beside instances: catalogue, stock, prices, tags, keys, disks, quotas, resizing, metadata."""
import math
import re

from base import Refusal, Reply
from rules import Rules
from world import RESERVED, YEAR_H, stamp, unstamp

ZONES = {
    "cn-hangzhou": ["cn-hangzhou-i", "cn-hangzhou-j"], "cn-shanghai": ["cn-shanghai-m"],
    "ap-southeast-1": ["ap-southeast-1c"]
}
DISK = "{0}.Category {0}.Size {0}.PerformanceLevel {0}.DiskName {0}.Encrypted {0}.KMSKeyId {0}.DeleteWithInstance"
RULES = {
    a: Rules(n) for a, n in {
        "RunInstances": "!RegionId !ImageId !InstanceType ZoneId SecurityGroupId SecurityGroupIds.N VSwitchId Amount "
        "MinAmount "
        "ClientToken InstanceName HostName KeyPairName UserData Tag.N.Key Tag.N.Value InstanceChargeType SpotStrategy "
        "SpotPriceLimit SpotDuration SpotInterruptionBehavior InternetMaxBandwidthOut InternetMaxBandwidthIn "
        "PrivatePoolOptions.MatchCriteria PrivatePoolOptions.Id "
        "InternetChargeType AutoReleaseTime DryRun HttpTokens HttpEndpoint RamRoleName Description IoOptimized "
        "ResourceGroupId " + DISK.format("SystemDisk") + " " + DISK.format("DataDisk.N"),
        "DescribeInstances": "!RegionId InstanceIds Tag.N.Key Tag.N.Value MaxResults NextToken PageNumber PageSize "
        "Status "
        "ZoneId InstanceName InstanceType AdditionalAttributes.N DryRun",
        "DeleteInstances": "!RegionId !InstanceId.N Force ForceStop TerminateSubscription ClientToken DryRun",
        "DeleteInstance": "RegionId !InstanceId Force ForceStop TerminateSubscription DryRun",
        "StopInstance": "RegionId !InstanceId ForceStop StoppedMode DryRun",
        "StartInstance": "RegionId !InstanceId DryRun",
        "StopInstances": "!RegionId !InstanceId.N ForceStop StoppedMode DryRun",
        "StartInstances": "!RegionId !InstanceId.N DryRun",
        "ModifyInstanceSpec": "RegionId !InstanceId InstanceType ClientToken AllowMigrateAcrossZone Async DryRun "
        "ModifyMode",
        "DescribeResourcesModification": "!RegionId !ResourceId !DestinationResource InstanceType OperationType",
        "ModifyInstanceAutoReleaseTime": "RegionId !InstanceId AutoReleaseTime",
        "DescribeRegions": "RegionId AcceptLanguage InstanceChargeType ResourceType",
        "DescribeZones": "!RegionId AcceptLanguage Verbose",
        "DescribeInstanceTypes": "RegionId MinimumGPUAmount GPUSpec InstanceTypes.N InstanceTypeFamilies.N "
        "MaxResults NextToken",
        "DescribeAvailableResource": "!RegionId !DestinationResource InstanceChargeType SpotStrategy InstanceType "
        "ZoneId "
        "IoOptimized ResourceType NetworkCategory SpotDuration",
        "DescribePrice": "!RegionId ResourceType InstanceType ImageId SystemDisk.Category SystemDisk.Size "
        "SystemDisk.PerformanceLevel InternetChargeType InternetMaxBandwidthOut PriceUnit Period SpotStrategy "
        "SpotDuration "
        "ZoneId Amount DataDisk.N.Category DataDisk.N.Size DataDisk.N.PerformanceLevel InstanceNetworkType "
        "IoOptimized",
        "DescribeSpotPriceHistory": "!RegionId !NetworkType !InstanceType ZoneId SpotDuration StartTime EndTime "
        "OSType Offset "
        "IoOptimized",
        "DescribeSpotAdvice": "!RegionId InstanceTypes.N GpuSpec GpuAmount ZoneId",
        "TagResources": "!RegionId !ResourceType !ResourceId.N Tag.N.Key Tag.N.Value",
        "ListTagResources": "!RegionId !ResourceType ResourceId.N Tag.N.Key Tag.N.Value NextToken",
        "ImportKeyPair": "!RegionId !KeyPairName !PublicKeyBody Tag.N.Key Tag.N.Value",
        "DeleteKeyPairs": "!RegionId !KeyPairNames",
        "DescribeKeyPairs": "!RegionId KeyPairName PageNumber PageSize",
        "DescribeAccountAttributes": "!RegionId AttributeName.N ZoneId",
        "DescribeDisks": "!RegionId DiskIds InstanceId Status Tag.N.Key Tag.N.Value PageNumber PageSize MaxResults "
        "NextToken",
        "DeleteDisk": "RegionId !DiskId",
        "CreateDisk": "!RegionId ZoneId InstanceId DiskName Description DiskCategory Size PerformanceLevel Encrypted "
        "KMSKeyId ClientToken Tag.N.Key Tag.N.Value SnapshotId ResourceGroupId MultiAttach ProvisionedIops "
        "BurstingEnabled",
        "AttachDisk": "RegionId !InstanceId !DiskId DeleteWithInstance Device Bootable Force",
        "DetachDisk": "RegionId !InstanceId !DiskId DeleteWithInstance",
        "GetCallerIdentity": "",
        "AssumeRole": "!RoleArn !RoleSessionName DurationSeconds Policy ExternalId",
        "AssumeRoleWithOIDC": "!RoleArn !RoleSessionName !OIDCProviderArn !OIDCToken DurationSeconds Policy",
        "ListAccessKeys": "UserName",
    }.items()
}
BAD_CURSOR = Refusal(400, "InvalidParameter.NextToken", "The specified NextToken is invalid.")


class More:

    def rows_of(self, p, rows):
        """(rows of the page, next token, count of all): by token where one of its parameters is given."""
        size = p.get("MaxResults") or p.get("PageSize") or "10"
        if not size.isdigit() or not 1 <= int(size) <= 100:
            raise Refusal(400, "InvalidParameter.PageSize", "It is between 1 and 100.")
        if "MaxResults" in p or "NextToken" in p:
            page, cursor = self.page(rows, p.get("NextToken"), int(size), 100, BAD_CURSOR)
            return page, cursor, 0
        rows = [r for row in rows for r in ([row, row] if self.duplicate else [row])]
        start = (int(p.get("PageNumber", "1")) - 1) * int(size)
        return rows[start:start + int(size)], "", len(rows)

    def sold(self, type, zone):
        return zone in type.facts.get("zones", [zone])

    def DescribeRegions(self, p):
        return dict(Regions=dict(Region=[
            dict(RegionId=r, LocalName=r, RegionEndpoint=f"ecs.{r}.aliyuncs.com", Status="available")
            for r in sorted(ZONES)
        ]))

    def DescribeZones(self, p):
        return dict(Zones=dict(Zone=[dict(ZoneId=z, LocalName=z) for z in ZONES[self.region]]))

    def DescribeInstanceTypes(self, p):
        names = [v for k, v in p.items() if k.startswith("InstanceTypes.")]
        rows = [
            t for t in self.types.values() if (not names or t.name in names) and
            t.count >= int(p.get("MinimumGPUAmount", "0")) and p.get("GPUSpec", t.gpu) == t.gpu
        ]
        limit = p.get("MaxResults", "0")
        rows, cursor = self.page(rows, p.get("NextToken"), int(limit), 1600, BAD_CURSOR)
        return dict(
            NextToken=cursor, InstanceTypes=dict(InstanceType=[
                dict(InstanceTypeId=t.name, InstanceTypeFamily=t.name.rpartition(".")[0], CpuCoreCount=t.vcpus,
                     CpuArchitecture=t.facts.get("architecture", "X86"), MemorySize=float(t.memory_gib),
                     GPUAmount=t.count, GPUSpec=t.gpu, GPUMemorySize=float(t.gpu_gib), InstanceBandwidthRx=10240000,
                     InstanceBandwidthTx=10240000, LocalStorageAmount=0,
                     EriQuantity=2 if t.count and t.gpu_gib == 80 else 0) for t in rows
            ]))

    def DescribeAvailableResource(self, p):
        if p["DestinationResource"] != "InstanceType":
            raise Refusal(400, "InvalidDestinationResource",
                          "The specified parameter DestinationResource is not valid.")
        for name, allowed in (("InstanceChargeType", ("PostPaid", "PrePaid")), ("IoOptimized", ("optimized", "none")),
                              ("SpotStrategy", ("NoSpot", "SpotAsPriceGo", "SpotWithPriceLimit")),
                              ("ResourceType", ("instance", "disk", "reservedinstance", "ddh"))):
            if p.get(name, allowed[0]) not in allowed:
                raise Refusal(400, f"Invalid{name}", f"The specified parameter {name} is not valid.")
        spot = p.get("SpotStrategy", "NoSpot") != "NoSpot"
        zones = []
        for zone in ZONES[self.region]:
            if p.get("ZoneId", zone) != zone:
                continue
            left = lambda t: self.world.left(t.name, zone)
            status = lambda n: ("SoldOut", "WithoutStock") if n == 0 else ("Available", "WithStock" if n is None else
                                                                           "ClosedWithStock")
            rows = [
                dict(Value=t.name, Status=status(left(t))[0], StatusCategory=status(left(t))[1])
                for t in self.types.values() if p.get("InstanceType", t.name) == t.name and self.sold(t, zone) and
                (not spot or t.spot is not None)
            ]
            any_left = any(r["Status"] == "Available" for r in rows)
            zones.append(
                dict(
                    RegionId=self.region, ZoneId=zone, Status="Available" if any_left else "SoldOut",
                    StatusCategory="WithStock" if any_left else "WithoutStock", AvailableResources=dict(
                        AvailableResource=[dict(Type="InstanceType", SupportedResources=dict(
                            SupportedResource=rows))])))
        return dict(AvailableZones=dict(AvailableZone=zones))

    def DescribePrice(self, p):
        type = p.get("InstanceType")
        if p.get("ResourceType") == "disk":
            return self.price_of_disk(p)
        if p.get("ResourceType", "instance") != "instance" or type not in self.types:
            raise Refusal(400, "InvalidInstanceType.ValueNotSupported",
                          f"The specified InstanceType {type} is not sold.")
        # The usual kind is an older one, which newer types do not take.
        disk = p.get("SystemDisk.Category", "cloud_efficiency")
        if re.match(r"ecs\.[a-z]+([7-9]|\d\d)", type) and not disk.startswith("cloud_essd"):
            raise Refusal(400, "InvalidSystemDiskCategory.ValueNotSupported",
                          f"The specified SystemDisk.Category {disk} is not supported by {type}.")
        unit, period = p.get("PriceUnit", "Hour"), int(p.get("Period", "1"))
        if (unit, period) != ("Hour", 1) and (unit != "Year" or period not in RESERVED):
            raise Refusal(400, "InvalidPriceUnit", f"{period} {unit} is not sold here.")
        hours = 1 if unit == "Hour" else YEAR_H * period * RESERVED[period]
        if p.get("ZoneId", ZONES[self.region][0]) not in ZONES[self.region]:
            raise Refusal(404, "InvalidZoneId.NotFound", "The specified ZoneId does not exist.")
        spot = p.get("SpotStrategy", "NoSpot") != "NoSpot"
        full, trade = self.price(type, False, self.region) / 1e6, self.price(type, spot, self.region) / 1e6
        times = int(p.get("Amount", "1")) * hours
        parts = [("instanceType", full * times, trade * times), ("systemDisk", 0.0, 0.0)]
        return dict(PriceInfo=dict(
            Rules=dict(Rule=[]), Price=dict(
                Currency=self.currency, OriginalPrice=full * times, TradePrice=trade *
                times, DiscountPrice=(full - trade) *
                times, ReservedInstanceHourPrice=0.0, DetailInfos=dict(DetailInfo=[
                    dict(Resource=n, OriginalPrice=o, TradePrice=t, DiscountPrice=o - t, Rules=dict(Rule=[]))
                    for n, o, t in parts
                ]))))

    def DescribeSpotPriceHistory(self, p):
        type = self.types.get(p["InstanceType"])
        if not type:
            raise Refusal(404, "InvalidInstanceType.NotFound", "The specified InstanceType does not exist.")
        now = self.world.now()
        end, start = unstamp(p.get("EndTime", stamp(now))), unstamp(p.get("StartTime", stamp(now - 3600)))
        if end is None or start is None:
            raise Refusal(400, "InvalidStartTime.Malformed", "The specified StartTime or EndTime is not valid.")
        if start < self.world.wall() - 30 * 86400:
            raise Refusal(400, "InvalidStartTime.Malformed", "The specified StartTime is more than 30 days ago.")
        hours = [end] + [end - 3600 * n for n in range(1, int(min(720, (end - start) // 3600)) + 1)]
        rows = [
            dict(
                ZoneId=z, InstanceType=type.name, NetworkType="vpc", IoOptimized="optimized",
                OriginPrice=self.price(type.name, False, self.region) / 1e6, Timestamp=stamp(at),
                SpotPrice=self.spot_then(type.name, self.region, at, 1 + 0.1 * math.sin(n)) / 1e6)
            for n, at in reversed(list(enumerate(self.spot_instants(type.name, hours, start, end))))
            for z in ZONES[self.region]
            if p.get("ZoneId", z) == z and self.sold(type, z)
        ]
        first, size = int(p.get("Offset", "0")), self.world.page_size or 1000
        rows = rows[first:first + size]  # behind the last row there is an empty page
        return dict(Currency=self.currency, NextOffset=first + len(rows), SpotPrices=dict(SpotPriceType=rows))

    def DescribeSpotAdvice(self, p):
        rows = [
            dict(InstanceType=t.name, InterruptRateDesc="0-3%", InterruptionRate=1.5, AverageSpotDiscount=20)
            for t in self.types.values() if t.spot is not None
        ]
        return dict(
            RegionId=self.region, AvailableSpotZones=dict(AvailableSpotZone=[
                dict(ZoneId=z, AvailableSpotResources=dict(AvailableSpotResource=rows)) for z in ZONES[self.region]
            ]))

    def ModifyInstanceSpec(self, p):
        m = self.here(p["InstanceId"])
        if m.phase != "stopped":
            raise Refusal(403, "IncorrectInstanceStatus", "The current status of the resource does not support it.")
        if p.get("InstanceType") not in self.types:
            raise Refusal(404, "InvalidInstanceType.NotFound", "The specified InstanceType does not exist.")
        if m.spot:
            raise Refusal(403, "OperationDenied.SpotInstance", "A spot instance cannot be resized.")
        self.effect()
        m.type = p["InstanceType"]
        m.costs(self.price(m.type, False, m.region))
        return dict(OrderId="1")

    def DescribeResourcesModification(self, p):
        m = self.here(p["ResourceId"])
        rows = [dict(Value=t.name, Status="Available") for t in self.types.values() if t.name != m.type]
        return dict(AvailableZones=dict(AvailableZone=[
            dict(
                ZoneId=m.zone, AvailableResources=dict(
                    AvailableResource=[dict(Type="InstanceType", SupportedResources=dict(SupportedResource=rows))]))
        ]))

    def ModifyInstanceAutoReleaseTime(self, p):
        m = self.here(p["InstanceId"])
        at = unstamp(p.get("AutoReleaseTime"))
        m.expire(self.world.of_wall(at // 60 * 60) if at else None)
        return {}

    def wanted_tags(self, p):
        return {p[f"Tag.{n}.Key"]: p.get(f"Tag.{n}.Value") for n in range(1, 21) if f"Tag.{n}.Key" in p}

    def TagResources(self, p):
        from alibaba import tags_of
        for id in [v for k, v in p.items() if k.startswith("ResourceId.")]:
            self.here(id).tags.update(tags_of(p))
        return {}

    def ListTagResources(self, p):
        tags = self.wanted_tags(p)
        rows = [
            dict(ResourceId=m.id, ResourceType="instance", TagKey=k, TagValue=v) for m in self.world.machines.values()
            if m.region == self.region and m.phase != "gone" and m.listed() and all(
                m.tags.get(k) in (v, m.tags.get(k)) if v is None else m.tags.get(k) == v for k, v in tags.items())
            for k, v in m.tags.items()
        ]
        rows, cursor = self.page(rows, p.get("NextToken"), 0, 50, BAD_CURSOR)
        return dict(NextToken=cursor, TagResources=dict(TagResource=rows))

    def ImportKeyPair(self, p):
        name = p["KeyPairName"]
        if not p["PublicKeyBody"].startswith(("ssh-rsa ", "ssh-ed25519 ")):
            raise Refusal(400, "InvalidPublicKeyBody.ValueNotSupported", "The specified PublicKeyBody is not valid.")
        if (self.region, name) in self.named:
            raise Refusal(400, "KeyPair.AlreadyExist", "The key pair already exist.")
        self.named[(self.region, name)] = self.world.attach("key", f"{self.region}/{name}", {}, None, False, False)
        return dict(KeyPairName=name, KeyPairFingerPrint="00" * 16)

    def DeleteKeyPairs(self, p):
        import json
        for name in json.loads(p["KeyPairNames"]):
            thing = self.named.pop((self.region, name), None)
            if thing:
                thing.ended = self.world.now()
        return {}

    def DescribeKeyPairs(self, p):
        rows = [n for r, n in self.named if r == self.region and p.get("KeyPairName", n) == n]
        return dict(KeyPairs=dict(KeyPair=[dict(KeyPairName=n) for n in rows]), TotalCount=len(rows))

    def DescribeAccountAttributes(self, p):
        names = [v for k, v in p.items() if k.startswith("AttributeName.")] or ["max-postpaid-instance-vcpu-count"]
        used = {s: sum(self.types[m.type].vcpus for m in self.world.alive() if m.region == self.region and m.spot == s)
                for s in (True, False)}
        value = lambda n: str(1000 if n.startswith("max-") else used["-spot-" in n])
        return dict(AccountAttributeItems=dict(AccountAttributeItem=[
            dict(AttributeName=n, AttributeValues=dict(ValueItem=[dict(Value=value(n))])) for n in names
        ]))

    def GetCallerIdentity(self, p):
        account = str(1000000000000000 + self.seed)
        return dict(AccountId=account, Arn=f"acs:ram::{account}:user/rille", IdentityType="RAMUser",
                    PrincipalId="200000000000000001", UserId="200000000000000001")

    def ListAccessKeys(self, p):
        rows = [dict(AccessKeyId=k, Status="Active", CreateDate=at) for k, at in (
            ("LTAI5tOtherOtherOtherOther", "2020-01-01T00:00:00Z"), (self.key, stamp(self.key_made())))]
        return dict(AccessKeys=dict(AccessKey=rows))

    def metadata(self, request, machine, path):
        """Both modes of access; URL/_metadata/INSTANCE stands for http://100.100.100.200."""
        if path == "/latest/api/token":
            if request.method != "PUT" or not request.header("X-aliyun-ecs-metadata-token-ttl-seconds").isdigit():
                return Reply(400, "", "text/plain")
            machine.facts["imds"] = self.world.word(40)
            return Reply(200, machine.facts["imds"], "text/plain")
        token = request.header("X-aliyun-ecs-metadata-token")
        if token and token != machine.facts.get("imds"):
            return Reply(403, "", "text/plain")
        if path == "/latest/meta-data/instance/spot/termination-time" and machine.noticed():
            return Reply(200, stamp(machine.reclaim_at), "text/plain")
        if path == "/latest/meta-data/instance-id":
            return Reply(200, machine.id, "text/plain")
        return Reply(404, "", "text/plain")
