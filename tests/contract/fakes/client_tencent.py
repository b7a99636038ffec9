"""A client of tencent.py."""
import json, time

import signatures
from clients import ApiError, Client
from world import stamp

PHASES = {
    "PENDING": "starting", "RUNNING": "running", "TERMINATING": "ending", "STOPPED": "stopped", "STOPPING": "stopping",
    "LAUNCH_FAILED": "failed"
}


class Tencent(Client):
    name, type, other, mismatch = "tencent", "GN7.2XLARGE32", "PNV4.7XLARGE116", ""
    CODES = dict(capacity="ResourceInsufficient.SpecifiedInstanceType", quota="LimitExceeded.InstanceQuota",
                 throttle="RequestLimitExceeded", error="InternalError", auth="AuthFailure.TokenFailure",
                 signature="AuthFailure.SignatureFailure", skew="AuthFailure.SignatureExpire",
                 unknown="UnknownParameter", missing="MissingParameter",
                 spot_price="InvalidParameterValue.InsufficientPrice", long_token="InvalidClientToken.TooLong")
    create_operation, list_operation = "RunInstances", "DescribeInstances"
    required, unknown = "ImageId", {"ImageIds": "x"}

    def call(self, action, parameters=None, service="cvm", version="2017-03-12", signed=("content-type", "host")):
        body = json.dumps(parameters or {}).encode()
        at = int(time.time() + self.shift)
        headers = {
            "Content-Type": "application/json; charset=utf-8", "Host": self.fake.host(), "X-TC-Action": action,
            "X-TC-Version": version, "X-TC-Timestamp": str(at), "X-TC-Region": "ap-guangzhou"
        }
        if "TENCENTCLOUD_TOKEN" in self.credentials:
            headers["X-TC-Token"] = self.credentials["TENCENTCLOUD_TOKEN"]
        date = stamp(at, "%Y-%m-%d")
        signature = signatures.tencent_tc3("POST", "", headers.items(), signed, signatures.sha256(body), at, date,
                                           service, self.credentials["TENCENTCLOUD_SECRET_KEY"])[1]
        headers["Authorization"] = (f"TC3-HMAC-SHA256 Credential={self.credentials['TENCENTCLOUD_SECRET_ID']}/{date}/"
                                    f"{service}/tc3_request, SignedHeaders={';'.join(signed)}, Signature={signature}")
        status, got, text = self.fake.send("POST", "/", headers, body)
        value = json.loads(text)["Response"]
        if "Error" in value:
            raise ApiError(status, value["Error"]["Code"], got, value["Error"]["Message"])
        return value

    def create(self, token="", tag="", type=None, spot=False, cap=None, drop=None, **more):
        p = dict(ImageId=self.fake.settings["image"], InstanceType=type or self.type, InstanceCount=1,
                 Placement=dict(Zone=self.fake.settings["zone"]), **more)
        if token:
            p["ClientToken"] = token
        if tag:
            p["TagSpecification"] = [dict(ResourceType="instance", Tags=[dict(Key="rille-lease", Value=tag)])]
        if spot:
            p["InstanceChargeType"] = "SPOTPAID"
            if cap:
                p["InstanceMarketOptions"] = dict(MarketType="spot",
                                                  SpotOptions=dict(MaxPrice=cap, SpotInstanceType="one-time"))
        p.pop(drop, None)
        return self.call("RunInstances", p)["InstanceIdSet"][0]

    def describe(self, id):
        rows = self.call("DescribeInstances", dict(InstanceIds=[id]))["InstanceSet"]
        return PHASES[rows[0]["InstanceState"]] if rows else "gone"

    def list(self, tag):
        ids = []
        while True:
            got = self.call("DescribeInstances",
                            dict(Filters=[dict(Name="tag:rille-lease", Values=[tag])], Limit=100, Offset=len(ids)))
            ids += [i["InstanceId"] for i in got["InstanceSet"]]
            if len(ids) >= got["TotalCount"]:
                return ids

    def terminate(self, id):
        self.call("TerminateInstances", dict(InstanceIds=[id]))

    def price(self):
        got = self.call(
            "DescribeZoneInstanceConfigInfos",
            dict(Filters=[
                dict(Name="instance-type", Values=[self.type]),
                dict(Name="instance-charge-type", Values=["SPOTPAID"])
            ]))
        return round(got["InstanceTypeQuotaSet"][0]["Price"]["UnitPriceDiscount"] * 1e6)

    def notice(self, id):
        status, _, text = self.fake.send("GET", f"/_metadata/{id}/latest/meta-data/spot/termination-time")
        return text.decode() if status == 200 else None

    def special(self, t):
        self.call("DescribeZones", signed=("content-type", "host", "x-tc-action"))
        t.code("AuthFailure.SecretIdNotFound",
               lambda: Tencent(t.fake, TENCENTCLOUD_SECRET_ID="AKID").call("DescribeZones"))
        t.equal(Tencent(t.fake, **t.fake.temporary).call("DescribeZones")["TotalCount"], 2)
        t.code("InvalidAction", lambda: self.call("DescribeInstancesXxx"))
        t.code("NoSuchVersion", lambda: self.call("DescribeZones", version="2017-03-13"))
        t.equal(self.call("GetCallerIdentity", service="sts", version="2018-08-13")["Type"], "CAMUser")
        keys = self.call("ListAccessKeys", service="cam", version="2019-01-16")["AccessKeys"]
        t.equal([k["AccessKeyId"] == self.credentials["TENCENTCLOUD_SECRET_ID"] for k in keys], [False, True])
        t.equal({"cam:ListAccessKeys", "cvm:DescribeZones"} <= set(t.fake.state()["needed"]), True)
        t.code("InvalidParameterValue.InvalidUserDataFormat", lambda: self.create(UserData="*"))
        t.code("DryRunOperation", lambda: self.create(DryRun=True))
        t.code("InvalidFilterValue.LimitExceeded",
               lambda: self.call("DescribeInstances", dict(Filters=[dict(Name="zone", Values=list("abcdef"))])))
        id = self.create(tag="x")
        t.fake.control("set", start=100)
        slow = self.create(tag="x")
        t.code("UnsupportedOperation.InstanceStatePending", lambda: self.terminate(slow))
        t.turn(200)
        timer = dict(TimerAction="TerminateInstances", ActionTime=stamp(t.wall() + 600))
        short = self.create(ActionTimer=timer)
        t.turn(590)
        t.equal(self.describe(short), "running")
        t.turn(20)
        t.equal((self.describe(short), t.machine(short)["reason"]), ("gone", "expired"))
        self.call("StopInstances", dict(InstanceIds=[id]))
        t.turn(10)
        self.call("ResetInstancesType", dict(InstanceIds=[id], InstanceType=self.other))
        t.equal(t.machine(id)["type"], self.other)
        self.terminate(id)
        self.terminate(slow)
        t.turn(10)
        t.code("InvalidInstanceId.NotFound", lambda: self.terminate(id))
        t.fault("late_error")
        failed = self.create(tag="f")
        t.equal((self.describe(failed), t.machine(failed)["bill"]), ("failed", 0))
        t.turn(700)
        disks = self.create(DataDisks=[dict(DiskType="CLOUD_PREMIUM", DiskSize=50, DeleteWithInstance=False)])
        t.turn(200)
        self.terminate(disks)
        t.turn(10)
        t.equal(t.fake.state()["alive"], 1)
        left = self.call("DescribeDisks", dict(Filters=[dict(Name="disk-state", Values=["UNATTACHED"])]), "cbs")
        self.call("TerminateDisks", dict(DiskIds=[left["DiskSet"][0]["DiskId"]]), "cbs")
        t.code("InvalidDiskId.NotFound", lambda: self.call("TerminateDisks", dict(DiskIds=["disk-none0000"]), "cbs"))
        self.disks(t)
        kinds = lambda *types: self.call(
            "DescribeInstanceTypeConfigs", dict(Filters=[dict(Name="instance-type", Values=list(types))]))
        row = kinds("HCCPNV6.96XLARGE2304")["InstanceTypeConfigSet"][0]
        t.equal((row["GpuCount"], row["GpuType"], row["GpuMemory"]), (8.0, "NVIDIA H100", 80.0))
        t.code("InvalidFilterValue.LimitExceeded", lambda: kinds(self.type, self.other))
        t.equal(t.fake.state()["alive"], 0)
        key = self.call("ImportKeyPair", dict(KeyName="k", ProjectId=0, PublicKey="ssh-rsa AAAA"))["KeyId"]
        self.create(LoginSettings=dict(KeyIds=[key]))
        t.code("InvalidKeyPairName.TooLong",
               lambda: self.call("ImportKeyPair", dict(KeyName="k" * 26, ProjectId=0, PublicKey="ssh-rsa AAAA")))

    def disks(self, t):
        ask = lambda action, **p: self.call(action, p, "cbs")
        t.fake.control("set", start=0.05)
        wish = dict(DiskChargeType="POSTPAID_BY_HOUR", DiskType="CLOUD_BSSD", DiskSize=20)
        make = lambda **more: ask("CreateDisks", **dict(wish, Placement=dict(Zone="ap-guangzhou-6"), **more))
        t.code("InvalidParameter.DiskConfigNotSupported",
               lambda: ask("InquiryPriceCreateDisks", **dict(wish, DiskSize=9)))
        t.code("InvalidParameterValue", lambda: make(DiskName="x" * 61))
        price = ask("InquiryPriceCreateDisks", **dict(wish, DiskSize=730))["DiskPrice"]
        t.equal((price["UnitPriceDiscount"], price["ChargeUnit"]), (1.0, "HOUR"))
        disk = make(ClientToken="d-1", Tags=[dict(Key="rille", Value="v")])["DiskIdSet"][0]
        t.equal(make(ClientToken="d-1")["DiskIdSet"], [disk])
        seen = lambda: ask("DescribeDisks", Filters=[dict(Name="disk-id", Values=[disk])])["DiskSet"]
        t.equal(seen(), [])
        t.turn(5)
        t.equal((seen()[0]["DiskState"], seen()[0]["Placement"]["Zone"]), ("UNATTACHED", "ap-guangzhou-6"))
        id = self.create(tag="with a disk")
        t.turn(5)
        ask("AttachDisks", InstanceId=id, DiskIds=[disk])
        t.turn(1)
        t.equal((seen()[0]["DiskState"], seen()[0]["InstanceId"]), ("ATTACHED", id))
        t.code("ResourceUnavailable.Attached", lambda: ask("AttachDisks", InstanceId=id, DiskIds=[disk]))
        t.code("InvalidDisk.Attached", lambda: ask("TerminateDisks", DiskIds=[disk]))
        ask("DetachDisks", DiskIds=[disk])
        ask("AttachDisks", InstanceId=id, DiskIds=[disk])
        self.terminate(id)
        t.turn(10)
        t.equal(seen()[0]["DiskState"], "UNATTACHED")
        ask("TerminateDisks", DiskIds=[disk])
        t.equal(seen(), [])
