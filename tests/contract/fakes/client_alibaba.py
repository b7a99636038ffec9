"""A client of alibaba.py: ACS3, and the older signature for `old`."""
import json, time, urllib.parse, uuid

import signatures
from clients import ApiError, Client
from world import stamp

PHASES = {
    "Starting": "starting", "Pending": "starting", "Running": "running", "Stopping": "ending", "Stopped": "stopped"
}


class Alibaba(Client):
    name, type, other = "alibaba", "ecs.gn6i-c4g1.xlarge", "ecs.gn7i-c8g1.2xlarge"
    mismatch = "IdempotentParameterMismatch"
    CODES = dict(capacity="OperationDenied.NoStock", quota="QuotaExceed.ElasticQuota", throttle="Throttling.User",
                 error="InternalError", auth="InvalidSecurityToken.Expired", signature="SignatureDoesNotMatch",
                 skew="InvalidTimeStamp.Expired", unknown="InvalidParameter", missing="MissingParameter",
                 spot_price="InvalidSpotPriceLimit.LowerThanPublicPrice", long_token="InvalidParameter.ClientToken")
    create_operation, list_operation = "RunInstances", "DescribeInstances"
    required, unknown = "ImageId", {"ImageIds": "x"}
    old = False

    def call(self, action, parameters=(), nonce=None, method="POST"):
        p = dict(parameters, RegionId="cn-hangzhou")
        if self.old:
            p.update(Action=action, Version="2014-05-26", Format="JSON", SignatureMethod="HMAC-SHA1",
                     SignatureVersion="1.0", SignatureNonce=nonce or str(uuid.uuid4()),
                     Timestamp=stamp(time.time() + self.shift),
                     AccessKeyId=self.credentials["ALIBABA_CLOUD_ACCESS_KEY_ID"])
            p["Signature"] = signatures.alibaba_rpc(method, p.items(),
                                                    self.credentials["ALIBABA_CLOUD_ACCESS_KEY_SECRET"])[1]
            query, headers = urllib.parse.urlencode(p), {}
        else:
            query = urllib.parse.urlencode(p, quote_via=urllib.parse.quote)
            headers = {
                "host": self.fake.host(), "x-acs-action": action, "x-acs-version": "2014-05-26",
                "x-acs-date": stamp(time.time() + self.shift), "x-acs-content-sha256": signatures.sha256(b""),
                "x-acs-signature-nonce": nonce or str(uuid.uuid4())
            }
            if "ALIBABA_CLOUD_SECURITY_TOKEN" in self.credentials:
                headers["x-acs-security-token"] = self.credentials["ALIBABA_CLOUD_SECURITY_TOKEN"]
            signed = sorted(headers)
            signature = signatures.alibaba_acs3(method, "/", query, headers.items(), signed, signatures.sha256(b""),
                                                self.credentials["ALIBABA_CLOUD_ACCESS_KEY_SECRET"])[1]
            headers["Authorization"] = (
                f"ACS3-HMAC-SHA256 Credential={self.credentials['ALIBABA_CLOUD_ACCESS_KEY_ID']},"
                f"SignedHeaders={';'.join(signed)},Signature={signature}")
        status, got, text = self.fake.send(method, "/?" + query, headers)
        value = json.loads(text)
        if status != 200:
            raise ApiError(status, value["Code"], got, value["Message"])
        return value

    def create(self, token="", tag="", type=None, spot=False, cap=None, drop=None, **more):
        p = dict(ImageId=self.fake.settings["image"], InstanceType=type or self.type, Amount=1, ZoneId="cn-hangzhou-i",
                 VSwitchId=self.fake.settings["subnet"], SecurityGroupId=self.fake.settings["security_group"])
        if token:
            p["ClientToken"] = token
        if tag:
            p.update({"Tag.1.Key": "rille-lease", "Tag.1.Value": tag})
        if spot:
            p.update(SpotStrategy="SpotWithPriceLimit" if cap else "SpotAsPriceGo",
                     **({"SpotPriceLimit": cap} if cap else {}))
        p.update(more)
        p.pop(drop, None)
        return self.call("RunInstances", p)["InstanceIdSets"]["InstanceIdSet"][0]

    def describe(self, id):
        rows = self.call("DescribeInstances", {"InstanceIds": json.dumps([id])})["Instances"]["Instance"]
        return PHASES[rows[0]["Status"]] if rows else "gone"

    def list(self, tag):
        ids, cursor = [], ""
        while True:
            p = {"Tag.1.Key": "rille-lease", "Tag.1.Value": tag, "MaxResults": 50}
            got = self.call("DescribeInstances", dict(p, **({"NextToken": cursor} if cursor else {})))
            ids += [i["InstanceId"] for i in got["Instances"]["Instance"]]
            cursor = got["NextToken"]
            if not cursor:
                return ids

    def terminate(self, id):
        self.call("DeleteInstances", {"InstanceId.1": id, "Force": "true"})

    def price(self):
        got = self.call("DescribePrice",
                        {"InstanceType": self.type, "SpotStrategy": "SpotAsPriceGo", "PriceUnit": "Hour"})
        return round(got["PriceInfo"]["Price"]["TradePrice"] * 1e6)

    def notice(self, id):
        status, _, text = self.fake.send("GET", f"/_metadata/{id}/latest/meta-data/instance/spot/termination-time")
        return text.decode() if status == 200 else None

    def special(self, t):
        old = Alibaba(t.fake)
        old.old = True
        id = old.create(token="old", tag="old one")
        t.equal(self.list("old one"), [id])
        old.credentials["ALIBABA_CLOUD_ACCESS_KEY_SECRET"] += "x"
        t.code("SignatureDoesNotMatch", lambda: old.call("DescribeRegions", method="GET"))
        old.shift = -1000
        t.code("InvalidTimeStamp.Expired", lambda: old.call("DescribeRegions"))
        t.code("InvalidAccessKeyId.NotFound",
               lambda: Alibaba(t.fake, ALIBABA_CLOUD_ACCESS_KEY_ID="LTAI").call("DescribeRegions"))
        t.equal(len(Alibaba(t.fake, **t.fake.temporary).call("DescribeRegions")["Regions"]["Region"]), 3)
        self.call("DescribeRegions", nonce="n" * 20)
        t.code("SignatureNonceUsed", lambda: self.call("DescribeRegions", nonce="n" * 20))
        t.code("IncorrectInstanceStatus", lambda: (t.turn(5), self.call("DeleteInstance", {"InstanceId": id})))
        self.terminate(id)
        t.turn(5)
        t.code("InvalidInstanceId.NotFound", lambda: self.terminate(id))
        t.code("InvalidUserData.Base64FormatInvalid", lambda: self.create(UserData="*"))
        t.code("DryRunOperation", lambda: self.create(DryRun="true"))
        t.code("InvalidAutoReleaseTime.Expired", lambda: self.create(AutoReleaseTime=stamp(t.wall() + 60)))
        id = self.create(AutoReleaseTime=stamp(t.wall() + 3600))
        t.equal(round(t.machine(id)["expires"] - t.now() + t.wall()) % 60, 0)
        t.turn(3500)
        t.equal(self.describe(id), "running")
        t.turn(120)
        t.equal((self.describe(id), t.machine(id)["reason"]), ("gone", "expired"))
        id = self.create(tag="locked", spot=True)
        t.turn(5)
        t.fake.control("reclaim", id=id, in_seconds=100)
        row = self.call("DescribeInstances", {"InstanceIds": json.dumps([id])})["Instances"]["Instance"][0]
        t.equal(row["OperationLocks"]["LockReason"], [{"LockReason": "Recycling"}])
        id = self.create(**{"DataDisk.1.Size": 50, "DataDisk.1.DeleteWithInstance": "false"})
        t.turn(200)
        self.call("StopInstance", {"InstanceId": id})
        t.turn(5)
        self.call("ModifyInstanceSpec", {"InstanceId": id, "InstanceType": self.other})
        self.terminate(id)
        t.turn(5)
        t.equal(t.fake.state()["alive"], 1)
        disk = self.call("DescribeDisks", {"Status": "Available"})["Disks"]["Disk"][0]["DiskId"]
        self.call("DeleteDisk", {"DiskId": disk})
        t.equal(t.fake.state()["alive"], 0)
        self.disks(t)
        t.fake.control("set", stock={self.type: 1})
        of = {"DestinationResource": "InstanceType", "InstanceType": self.type}
        stock = lambda **more: self.call("DescribeAvailableResource", dict(of, **more))["AvailableZones"]
        row = stock(SpotStrategy="SpotAsPriceGo")["AvailableZone"][0]["AvailableResources"]["AvailableResource"][0]
        t.equal([(r["Status"], r["StatusCategory"]) for r in row["SupportedResources"]["SupportedResource"]],
                [("Available", "ClosedWithStock")])
        t.code("InvalidSpotStrategy", lambda: stock(SpotStrategy="Cheap"))
        t.code("InvalidStatus.NotFound", lambda: self.call("DescribeDisks", {"Status": "Loose"}))
        t.fake.control("set", stock={self.type: 0})
        zones = self.call("DescribeAvailableResource",
                          {"DestinationResource": "InstanceType", "InstanceType": self.type})
        t.equal(zones["AvailableZones"]["AvailableZone"][0]["StatusCategory"], "WithoutStock")

    def disks(self, t):
        wish = {"ZoneId": "cn-hangzhou-i", "DiskCategory": "cloud_essd", "Size": 20, "Tag.1.Key": "rille",
                "Tag.1.Value": "v", "ClientToken": "disk-1"}
        t.code("InvalidSize.ValueNotSupported", lambda: self.call("CreateDisk", dict(wish, Size=19)))
        t.code("InvalidDiskCategory.ValueNotSupported", lambda: self.call("CreateDisk", dict(wish, DiskCategory="x")))
        t.code("InvalidZoneId.NotFound", lambda: self.call("CreateDisk", dict(wish, ZoneId="cn-hangzhou-x")))
        disk = self.call("CreateDisk", wish)["DiskId"]
        t.equal(self.call("CreateDisk", wish)["DiskId"], disk)
        t.code("IdempotentParameterMismatch", lambda: self.call("CreateDisk", dict(wish, Size=30)))
        seen = lambda: self.call("DescribeDisks", {"DiskIds": json.dumps([disk])})["Disks"]["Disk"][0]
        id = self.create(tag="with a disk")
        to = {"InstanceId": id, "DiskId": disk}
        t.equal(seen()["Status"], "Creating")
        t.code("IncorrectInstanceStatus", lambda: self.call("AttachDisk", to))
        t.turn(5)
        t.equal((seen()["Status"], seen()["SerialNumber"], seen()["ZoneId"]), ("Available", disk[2:], wish["ZoneId"]))
        self.call("AttachDisk", to)
        t.turn(1)
        t.equal((seen()["Status"], seen()["InstanceId"], seen()["DeleteWithInstance"]), ("In_use", id, False))
        t.code("IncorrectDiskStatus", lambda: self.call("AttachDisk", to))
        t.code("IncorrectDiskStatus", lambda: self.call("DeleteDisk", {"DiskId": disk}))
        self.call("DetachDisk", to)
        self.call("AttachDisk", to)
        self.terminate(id)
        t.turn(5)
        t.equal(seen()["Status"], "Available")
        self.call("DeleteDisk", {"DiskId": disk})
        t.code("InvalidDiskId.NotFound", lambda: self.call("AttachDisk", to))
        price = {"ResourceType": "disk", "DataDisk.1.Category": "cloud_essd", "DataDisk.1.Size": 730}
        t.equal(self.call("DescribePrice", price)["PriceInfo"]["Price"]["TradePrice"], 1.0)
