"""A client of aws.py."""
import re, time, urllib.parse
import xml.etree.ElementTree as tree

import signatures
from clients import ApiError, Client
from world import stamp

PHASES = {
    "pending": "starting", "running": "running", "shutting-down": "ending", "terminated": "gone", "stopped": "stopped",
    "stopping": "stopping"
}


class Aws(Client):
    name, type, other, mismatch = "aws", "g4dn.xlarge", "g5.xlarge", "IdempotentParameterMismatch"
    CODES = dict(capacity="InsufficientInstanceCapacity", quota="VcpuLimitExceeded", throttle="RequestLimitExceeded",
                 error="InternalError", auth="RequestExpired", signature="SignatureDoesNotMatch", skew="AuthFailure",
                 unknown="UnknownParameter", missing="MissingParameter", spot_price="SpotMaxPriceTooLow",
                 absent="InvalidInstanceID.NotFound", long_token="InvalidParameterValue")
    create_operation, list_operation = "RunInstances", "DescribeInstances"

    def sign(self, path, headers, body, service, region):
        date = stamp(time.time() + self.shift, "%Y%m%dT%H%M%SZ")
        headers = dict(headers, **{"Host": self.fake.host(), "X-Amz-Date": date})
        if "AWS_SESSION_TOKEN" in self.credentials:
            headers["X-Amz-Security-Token"] = self.credentials["AWS_SESSION_TOKEN"]
        signed = sorted(k.lower() for k in headers)
        signature = signatures.sigv4("POST", path, "", headers.items(), signed, signatures.sha256(body), date, region,
                                     service, self.credentials["AWS_SECRET_ACCESS_KEY"])[1]
        headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.credentials['AWS_ACCESS_KEY_ID']}/{date[:8]}/"
                                    f"{region}/{service}/aws4_request, SignedHeaders={';'.join(signed)}, "
                                    f"Signature={signature}")
        return headers

    def call(self, action, parameters=(), service="ec2", version="2016-11-15", region="us-east-1"):
        body = urllib.parse.urlencode(dict(parameters, Action=action, Version=version)).encode()
        headers = self.sign("/", {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}, body, service,
                            region)
        status, got, text = self.fake.send("POST", "/", headers, body)
        root = tree.fromstring(re.sub(r' xmlns="[^"]*"', "", text.decode()))
        if status != 200:
            raise ApiError(status, root.find(".//Code").text, got, root.find(".//Message").text)
        return root

    def json_call(self, target, body, service, region="us-east-1"):
        import json
        data = json.dumps(body).encode()
        headers = self.sign("/", {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": target}, data, service,
                            region)
        status, got, text = self.fake.send("POST", "/", headers, data)
        value = json.loads(text)
        if status != 200:
            raise ApiError(status, value["__type"], got, value["message"])
        return value

    def body(self, token, tag, type, spot, cap):
        p = dict(ImageId=self.fake.settings["image"], InstanceType=type or self.type, MinCount=1, MaxCount=1)
        p["Placement.AvailabilityZone"] = self.fake.settings["zone"]
        if token:
            p["ClientToken"] = token
        if tag:
            p.update({
                "TagSpecification.1.ResourceType": "instance", "TagSpecification.1.Tag.1.Key": "rille-lease",
                "TagSpecification.1.Tag.1.Value": tag
            })
        if spot:
            p["InstanceMarketOptions.MarketType"] = "spot"
            if cap:
                p["InstanceMarketOptions.SpotOptions.MaxPrice"] = cap
        return p

    def create(self, token="", tag="", type=None, spot=False, cap=None, drop=None, **more):
        p = dict(self.body(token, tag, type, spot, cap), **more)
        p.pop(drop or "ImageId_", None)
        return self.call("RunInstances", p).find(".//instanceId").text

    required, unknown = "ImageId", {"InstanceTypes": "x"}

    def describe(self, id):
        try:
            found = self.call("DescribeInstances", {"InstanceId.1": id})
        except ApiError as e:
            if e.code == "InvalidInstanceID.NotFound":
                return "gone"
            raise
        return PHASES[found.find(".//instanceState/name").text]

    def list(self, tag):
        ids, cursor = [], None
        while True:
            p = {
                "Filter.1.Name": "tag:rille-lease", "Filter.1.Value.1": tag, "Filter.2.Name": "instance-state-name",
                "Filter.2.Value.1": "pending", "Filter.2.Value.2": "running", "Filter.2.Value.3": "shutting-down"
            }
            found = self.call("DescribeInstances", dict(p, **({"NextToken": cursor} if cursor else {})))
            ids += [i.text for i in found.findall(".//instanceId")]
            cursor = found.findtext("nextToken")
            if not cursor:
                return ids

    def terminate(self, id):
        self.call("TerminateInstances", {"InstanceId.1": id})

    def price(self):
        rows = self.call("DescribeSpotPriceHistory",
                         {"InstanceType.1": self.type, "ProductDescription.1": "Linux/UNIX"})
        return round(float(rows.find(".//spotPrice").text) * 1e6)

    def notice(self, id):
        """The spot notice as seen inside the machine; None."""
        base = f"/_metadata/{id}/latest"
        token = self.fake.send("PUT", base + "/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})[2].decode()
        status, _, text = self.fake.send("GET", base + "/meta-data/spot/instance-action",
                                         {"X-aws-ec2-metadata-token": token})
        return text.decode() if status == 200 else None

    def volumes(self, t):
        asked = {
            "AvailabilityZone": "us-east-1b", "Size": "10", "VolumeType": "gp3", "ClientToken": "v" * 8,
            "TagSpecification.1.ResourceType": "volume", "TagSpecification.1.Tag.1.Key": "rille",
            "TagSpecification.1.Tag.1.Value": "x"
        }
        made = self.call("CreateVolume", asked)
        disk = made.findtext("volumeId")
        t.equal(self.call("CreateVolume", asked).findtext("volumeId"), disk)
        t.code("IdempotentParameterMismatch", lambda: self.call("CreateVolume", dict(asked, Size="11")))
        t.code("InvalidZone.NotFound", lambda: self.call("CreateVolume", dict(asked, AvailabilityZone="moon")))
        t.code("InvalidParameterValue", lambda: self.call("CreateVolume", dict(asked, VolumeType="st1")))
        id = self.create(tag="volume", **{"Placement.AvailabilityZone": "us-east-1b"})
        attach = lambda to: self.call("AttachVolume", {"VolumeId": disk, "InstanceId": to, "Device": "/dev/sdf"})
        t.code("IncorrectState", lambda: attach(id))
        t.turn(10)
        other = self.create(tag="volume", **{"Placement.AvailabilityZone": "us-east-1a"})
        t.turn(10)
        t.code("InvalidVolume.ZoneMismatch", lambda: attach(other))
        attach(id)
        t.code("VolumeInUse", lambda: attach(id))
        t.code("VolumeInUse", lambda: self.call("DeleteVolume", {"VolumeId": disk}))
        shown = self.call("DescribeInstances", {"InstanceId.1": id})
        t.equal(disk in [v.text for v in shown.findall(".//volumeId")], True)
        for one in (id, other):
            self.terminate(one)
        t.turn(10)
        t.equal(t.fake.state()["alive"], 1)  # the volume has outlived both
        self.call("DeleteVolume", {"VolumeId": disk})
        t.equal(t.fake.state()["alive"], 0)

    def special(self, t):
        """What only this provider has; t is the test case."""
        id = self.create(token="a" * 8, tag="special")
        self.terminate(id)
        t.code("IdempotentInstanceTerminated", lambda: self.create(token="a" * 8, tag="special"))
        t.code("InvalidParameterCombination",
               lambda: self.call("DescribeInstances", {"InstanceId.1": id, "MaxResults": 5}))
        t.code("DryRunOperation", lambda: self.create(DryRun="true"))
        t.code("InvalidUserData.Malformed", lambda: self.create(UserData="***"))
        t.code("InvalidAction", lambda: self.call("RunInstance"))
        t.equal(
            self.call("GetCallerIdentity", service="sts", version="2011-06-15").find(".//Account").text, "123456789012")
        keys = self.call("ListAccessKeys", service="iam", version="2010-05-08").findall(".//member")
        t.equal([k.find("AccessKeyId").text == self.credentials["AWS_ACCESS_KEY_ID"] for k in keys], [False, True])
        t.code("ValidationError", lambda: Aws(t.fake, **t.fake.temporary).call(
            "ListAccessKeys", service="iam", version="2010-05-08"))
        t.equal({"iam:ListAccessKeys", "ec2:RunInstances", "ec2:CreateTags"} <= set(t.fake.state()["needed"]), True)
        group = self.call("CreateSecurityGroup", {"GroupName": "g", "GroupDescription": "x"}).find(".//groupId").text
        t.code("InvalidGroup.Duplicate",
               lambda: self.call("CreateSecurityGroup", {"GroupName": "g", "GroupDescription": "x"}))
        found = self.call("DescribeSecurityGroups", {"Filter.1.Name": "group-name", "Filter.1.Value.1": "g"})
        t.equal([g.text for g in found.findall(".//groupId")], [group])
        self.call("DeleteSecurityGroup", {"GroupId": group})
        t.code("InvalidGroup.NotFound", lambda: self.call("DeleteSecurityGroup", {"GroupId": group}))
        t.code(
            "InvalidClientTokenId", lambda: Aws(t.fake, AWS_ACCESS_KEY_ID="AKIAX").call(
                "GetCallerIdentity", service="sts", version="2011-06-15"))
        t.code("AuthFailure", lambda: Aws(t.fake, AWS_ACCESS_KEY_ID="AKIAX").call("DescribeInstances"))
        t.equal(bool(Aws(t.fake, **t.fake.temporary).call("DescribeRegions").findall(".//regionName")), True)
        got = self.json_call(
            "AWSPriceListService.GetProducts", {
                "ServiceCode": "AmazonEC2", "Filters": [{
                    "Type": "TERM_MATCH", "Field": "instanceType", "Value": "p5.48xlarge"
                }, {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"}]
            }, "pricing")
        t.equal(len(got["PriceList"]), 1)
        t.equal("34.608" in got["PriceList"][0], True)
        quotas = self.json_call("ServiceQuotasV20190624.ListServiceQuotas", {"ServiceCode": "ec2"}, "servicequotas")
        t.equal(quotas["Quotas"][0]["QuotaCode"], "L-417A185B")
        id = self.create(tag="resize")
        t.turn(10)
        t.code("IncorrectInstanceState",
               lambda: self.call("ModifyInstanceAttribute", {"InstanceId": id, "InstanceType.Value": self.other}))
        self.call("StopInstances", {"InstanceId.1": id})
        t.turn(10)
        t.equal(self.describe(id), "stopped")
        self.call("ModifyInstanceAttribute", {"InstanceId": id, "InstanceType.Value": self.other})
        self.call("StartInstances", {"InstanceId.1": id})
        t.turn(10)
        t.equal(t.machine(id)["type"], self.other)
        self.terminate(id)
        kept = self.create(
            tag="disk",
            **{"BlockDeviceMapping.1.DeviceName": "/dev/sda1", "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "false"})
        self.terminate(kept)
        t.turn(10)
        t.equal(t.fake.state()["alive"], 1)
        left = t.machine(kept)["bills"]["disk"]
        t.turn(7200)  # it costs on, and so it is on the bill of the machine that has left it
        cost = 2 * 8 * 0.08 / 730 * 1e6
        t.assertTrue(cost - 1 <= t.machine(kept)["bills"]["disk"] - left <= cost + 10, (cost, t.machine(kept)))
        disk = self.call("DescribeVolumes", {"Filter.1.Name": "status", "Filter.1.Value.1": "available"})
        self.call("DeleteVolume", {"VolumeId": disk.find(".//volumeId").text})
        self.volumes(t)
        self.call("ImportKeyPair", {"KeyName": "k", "PublicKeyMaterial": "c3NoLWVkMjU1MTkgQUFBQQ=="})
        self.terminate(self.create(KeyName="k"))
        t.code("InvalidKeyPair.NotFound", lambda: self.create(KeyName="other"))
        self.call("DeleteKeyPair", {"KeyName": "k"})
        t.equal(
            len(
                self.call("DescribeInstanceTypes",
                          {"Filter.1.Name": "instance-type", "Filter.1.Value.1": "p5*"}).findall(".//instanceType")), 2)
