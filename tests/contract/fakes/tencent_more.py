"""What tencent.py has beside instances: catalogue with prices and stock, keys, disks, quotas, identity."""
from base import Refusal
from rules import Rules
from world import RESERVED, YEAR_H, stamp

ZONES = {
    "ap-guangzhou": ["ap-guangzhou-6", "ap-guangzhou-7"], "ap-shanghai": ["ap-shanghai-5"],
    "ap-singapore": ["ap-singapore-3"]
}
SUBNETS = {
    "subnet-fake0006": "ap-guangzhou-6", "subnet-fake0007": "ap-guangzhou-7", "subnet-fake0005": "ap-shanghai-5",
    "subnet-fake0003": "ap-singapore-3"
}
IMAGE, GROUP = "img-487zeit5", "sg-fake0001"
FILTERS = "Filters.N.Name Filters.N.Values.N "
RUN = """!InstanceType !ImageId !Placement.Zone Placement.ProjectId InstanceChargeType SystemDisk.DiskType
SystemDisk.DiskSize DataDisks.N.DiskType DataDisks.N.DiskSize DataDisks.N.DeleteWithInstance DataDisks.N.Encrypt
DataDisks.N.KmsKeyId VirtualPrivateCloud.VpcId VirtualPrivateCloud.SubnetId InternetAccessible.InternetChargeType
InternetAccessible.InternetMaxBandwidthOut InternetAccessible.PublicIpAssigned InstanceCount MinCount InstanceName
LoginSettings.KeyIds.N SecurityGroupIds.N ClientToken HostName TagSpecification.N.ResourceType
TagSpecification.N.Tags.N.Key TagSpecification.N.Tags.N.Value InstanceMarketOptions.MarketType
InstanceMarketOptions.SpotOptions.MaxPrice InstanceMarketOptions.SpotOptions.SpotInstanceType UserData DryRun
ActionTimer.TimerAction ActionTimer.ActionTime ActionTimer.Externals.* CamRoleName DisableApiTermination
EnhancedService.*"""
CREATE_DISKS = "!DiskChargeType !DiskType !DiskSize Placement.ProjectId DiskCount ThroughputPerformance "
RULES = {
    k: Rules(n) for k, n in {
        ("cvm", "RunInstances"): RUN,
        ("cvm", "InquiryPriceRunInstances"): RUN,
        ("cvm", "DescribeInstances"): FILTERS + "InstanceIds.N Offset Limit",
        ("cvm", "DescribeInstancesStatus"): "InstanceIds.N Offset Limit",
        ("cvm", "TerminateInstances"): "!InstanceIds.N ReleaseAddress ReleasePrepaidDataDisks DryRun",
        ("cvm", "StopInstances"): "!InstanceIds.N StopType StoppedMode ForceStop",
        ("cvm", "StartInstances"): "!InstanceIds.N",
        ("cvm", "ResetInstancesType"): "!InstanceIds.N !InstanceType ForceStop",
        ("cvm", "InquiryPriceResetInstancesType"): "!InstanceIds.N !InstanceType",
        ("cvm", "DescribeZoneInstanceConfigInfos"): FILTERS,
        ("cvm", "DescribeInstanceTypeConfigs"): FILTERS,
        ("cvm", "DescribeZones"): "",
        ("cvm", "DescribeRegions"): "",
        ("cvm", "DescribeImages"): FILTERS + "ImageIds.N Offset Limit InstanceType",
        ("cvm", "ImportKeyPair"): "!KeyName !ProjectId !PublicKey TagSpecification.*",
        ("cvm", "DeleteKeyPairs"): "!KeyIds.N",
        ("cvm", "DescribeKeyPairs"): FILTERS + "KeyIds.N Offset Limit",
        ("cvm", "DescribeAccountQuota"): FILTERS,
        ("cbs", "DescribeDisks"): FILTERS + "DiskIds.N Offset Limit",
        ("cbs", "TerminateDisks"): "!DiskIds.N DeleteSnapshot",
        ("cbs", "CreateDisks"): CREATE_DISKS + "!Placement.Zone DiskName Tags.N.Key Tags.N.Value SnapshotId KmsKeyId "
        "Shareable ClientToken Encrypt EncryptType DeleteSnapshot DiskBackupQuota BurstPerformance",
        ("cbs", "InquiryPriceCreateDisks"): CREATE_DISKS,
        ("cbs", "AttachDisks"): "!InstanceId !DiskIds.N DeleteWithInstance AttachMode",
        ("cbs", "DetachDisks"): "!DiskIds.N InstanceId",
        ("sts", "GetCallerIdentity"): "",
        ("sts", "AssumeRole"): "!RoleArn !RoleSessionName DurationSeconds",
        ("sts", "AssumeRoleWithWebIdentity"): "!ProviderId !WebIdentityToken !RoleArn !RoleSessionName DurationSeconds",
        ("cam", "ListAccessKeys"): "TargetUin",
    }.items()
}


class More:

    def filters(self, p, known):
        """Filter name -> values; refuses names that this call does not know."""
        for f in p.get("Filters", []):
            if f.get("Name") not in known:
                raise Refusal(200, "InvalidFilter", f"The filter `{f.get('Name')}` is not known.")
        return {f["Name"]: f.get("Values", []) for f in p.get("Filters", [])}

    def sold(self, type, zone):
        return zone in type.facts.get("zones", [zone])

    def unit_price(self, type, spot):
        full, price = self.price(type, False, self.region) / 1e6, self.price(type, spot, self.region) / 1e6
        return dict(UnitPrice=full, UnitPriceDiscount=price, ChargeUnit="HOUR", Discount=round(price / full * 100, 2),
                    UnitPriceSecondStep=0, UnitPriceThirdStep=0)

    def years_price(self, type):
        hourly = self.price(type, False, self.region) / 1e6
        one, three = (hourly * YEAR_H * years * share for years, share in RESERVED.items())
        return dict(OriginalPrice=hourly * 730, DiscountPrice=hourly * 700, OriginalPriceOneYear=one * 1.2,
                    DiscountPriceOneYear=one, OriginalPriceThreeYear=three * 1.2, DiscountPriceThreeYear=three)

    def DescribeZoneInstanceConfigInfos(self, p):
        f = self.filters(p, ("zone", "instance-family", "instance-type", "instance-charge-type", "sort-keys"))
        rows = []
        for zone in ZONES[self.region]:
            for t in self.types.values():
                for charge in ("POSTPAID_BY_HOUR", "SPOTPAID", "PREPAID"):
                    family, spot = t.name.split(".")[0], charge == "SPOTPAID"
                    asked = {
                        "zone": zone, "instance-family": family, "instance-type": t.name, "instance-charge-type": charge
                    }
                    if not self.sold(t, zone) or (spot and t.spot is None) or any(asked[n] not in v
                                                                                  for n, v in f.items() if n in asked):
                        continue
                    left = self.world.left(t.name, zone) != 0
                    rows.append(
                        dict(Zone=zone, InstanceType=t.name, InstanceChargeType=charge, Cpu=t.vcpus,
                             Memory=t.memory_gib, Gpu=t.count, GpuCount=float(t.count), InstanceFamily=family,
                             TypeName=t.name, Status="SELL" if left else "SOLD_OUT",
                             StatusCategory="EnoughStock" if left else "WithoutStock",
                             SoldOutReason="" if left else "sold out", Price=self.years_price(t.name)
                             if charge == "PREPAID" else self.unit_price(t.name, spot), Externals={}, Remark=t.gpu,
                             NetworkCard=25, InstanceBandwidth=25.0,
                             CpuType="Ampere Altra" if family == "SR1" else "Intel", Fpga=0))
        return dict(InstanceTypeQuotaSet=rows)

    def DescribeInstanceTypeConfigs(self, p):
        f = self.filters(p, ("zone", "instance-family", "instance-type"))
        if any(len(v) > 1 for v in f.values()):
            raise Refusal(200, "InvalidFilterValue.LimitExceeded", "At most one value of a filter.")
        told = lambda t: not t.name.startswith("GN7.")  # of an old family the number alone
        rows = [
            dict(Zone=z, InstanceType=t.name, InstanceFamily=t.name.split(".")[0], GPU=t.count, CPU=t.vcpus,
                 Memory=t.memory_gib, FPGA=0, GpuCount=float(t.count), GpuType=t.gpu if told(t) else "",
                 GpuMemory=float(t.gpu_gib) if told(t) else 0.0) for z in ZONES[self.region]
            for t in self.types.values()
            if self.sold(t, z) and z in f.get("zone", [z]) and t.name in f.get("instance-type", [t.name]) and
            t.name.split(".")[0] in f.get("instance-family", [t.name.split(".")[0]])
        ]
        return dict(InstanceTypeConfigSet=rows)

    def InquiryPriceRunInstances(self, p):
        self.checked(p)
        spot, _ = self.market(p)
        return dict(Price=dict(InstancePrice=self.unit_price(p["InstanceType"], spot), BandwidthPrice=dict(
            UnitPrice=0.8, UnitPriceDiscount=0.8, ChargeUnit="GB")))

    def InquiryPriceResetInstancesType(self, p):
        if p["InstanceType"] not in self.types:
            raise Refusal(200, "InvalidInstanceType.ValueNotSupported", f"The type `{p['InstanceType']}` is not sold.")
        return dict(Price=dict(InstancePrice=self.unit_price(p["InstanceType"], False)))

    def DescribeRegions(self, p):
        return dict(TotalCount=len(ZONES),
                    RegionSet=[dict(Region=r, RegionName=r, RegionState="AVAILABLE") for r in sorted(ZONES)])

    def DescribeZones(self, p):
        return dict(
            TotalCount=len(ZONES[self.region]), ZoneSet=[
                dict(Zone=z, ZoneName=z, ZoneId=str(n), ZoneState="AVAILABLE")
                for n, z in enumerate(ZONES[self.region], 1)
            ])

    def DescribeImages(self, p):
        return dict(
            TotalCount=1, ImageSet=[
                dict(ImageId=IMAGE, OsName="Ubuntu Server 22.04 LTS 64bit", ImageType="PUBLIC_IMAGE",
                     ImageState="NORMAL", Platform="Ubuntu")
            ])

    def ImportKeyPair(self, p):
        if len(p["KeyName"]) > 25 or not p["KeyName"].replace("_", "a").isalnum():
            raise Refusal(
                200, "InvalidKeyPairName.TooLong" if len(p["KeyName"]) > 25 else "InvalidKeyPairNameIncludeIllegalChar",
                f"The key name `{p['KeyName']}` is not valid.")
        if not p["PublicKey"].startswith(("ssh-rsa ", "ssh-ed25519 ")):
            raise Refusal(200, "InvalidPublicKey.Malformed", "The public key is malformed.")
        if any(t.facts["name"] == p["KeyName"] for t in self.named.values()):
            raise Refusal(200, "InvalidKeyPairName.Duplicate", f"The key name `{p['KeyName']}` is taken.")
        id = "skey-" + self.world.word(8)
        self.named[id] = self.world.attach("key", id, {}, None, False, False, name=p["KeyName"])
        return dict(KeyId=id)

    def DeleteKeyPairs(self, p):
        for id in p["KeyIds"]:
            if id not in self.named:
                raise Refusal(200, "InvalidKeyPairId.NotFound", f"The key `{id}` is not found.")
            self.named.pop(id).ended = self.world.now()
        return {}

    def DescribeKeyPairs(self, p):
        names = self.filters(p, ("key-name", "project-id")).get("key-name")
        rows = [
            dict(KeyId=i, KeyName=t.facts["name"]) for i, t in self.named.items()
            if i in p.get("KeyIds", [i]) and (names is None or t.facts["name"] in names)
        ]
        return dict(TotalCount=len(rows), KeyPairSet=rows)

    def DescribeAccountQuota(self, p):
        rows = [
            dict(Zone=z, UsedQuota=len(self.world.alive()), RemainingQuota=100, TotalQuota=100)
            for z in ZONES[self.region]
        ]
        return dict(
            AppId=1250000000, AccountQuotaOverview=dict(Region=self.region,
                                                        AccountQuota=dict(PostPaidQuotaSet=rows,
                                                                          SpotPaidQuotaSet=rows)))

    def GetCallerIdentity(self, p):
        uin = str(100000000000 + self.seed)
        return dict(Arn=f"qcs::cam::uin/{uin}:uin/{uin}", AccountId=uin, UserId=uin, PrincipalId=uin, Type="CAMUser")

    def ListAccessKeys(self, p):
        form = "%Y-%m-%d %H:%M:%S"
        return dict(AccessKeys=[
            dict(AccessKeyId="AKIDotherotherother", Status="Active", CreateTime="2020-01-01 00:00:00"),
            dict(AccessKeyId=self.key, Status="Active", CreateTime=stamp(self.key_made(), form))
        ])
