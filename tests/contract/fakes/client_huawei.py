"""A client of huawei.py."""
import json, time

import signatures
from clients import ApiError, Client
from huawei_more import GROUP, SUBNET, VPC
from world import stamp


class Huawei(Client):
    name, type, other, mismatch = "huawei", "pi2.2xlarge.4", "pi3.4xlarge.4", ""
    CODES = dict(capacity="Ecs.0219", quota="Ecs.0001", throttle="APIGW.0308", error="Ecs.0000", auth="APIGW.0301",
                 signature="APIGW.0301", skew="APIGW.0301", unknown="Ecs.0005", missing="Ecs.0005",
                 spot_price="Ecs.0005")
    create_operation, list_operation = "createServers", "listServersByTag"
    required, unknown = "imageRef", {"imageref": "x"}

    def call(self, method, path, body=None, query="", **headers):
        data = b"" if body is None else json.dumps(body).encode()
        date = stamp(time.time() + self.shift, "%Y%m%dT%H%M%SZ")
        path = path.replace("{p}", self.fake.settings["project"])
        headers = dict({"Host": self.fake.host(), "X-Sdk-Date": date, "Content-Type": "application/json"},
                       **{k.replace("_", "-"): v for k, v in headers.items()})
        if "HUAWEICLOUD_SDK_SECURITY_TOKEN" in self.credentials:
            headers["X-Security-Token"] = self.credentials["HUAWEICLOUD_SDK_SECURITY_TOKEN"]
        signed = sorted(k.lower() for k in headers)
        signature = signatures.huawei(method, path, query, headers.items(), signed, signatures.sha256(data), date,
                                      self.credentials["HUAWEICLOUD_SDK_SK"])[1]
        headers["Authorization"] = (f"SDK-HMAC-SHA256 Access={self.credentials['HUAWEICLOUD_SDK_AK']}, "
                                    f"SignedHeaders={';'.join(signed)}, Signature={signature}")
        status, got, text = self.fake.send(method, path + ("?" + query if query else ""), headers, data)
        value = json.loads(text) if text else {}
        if status >= 300:
            raise ApiError(status, value["error_code"] if "error_code" in value else value["error"]["code"], got,
                           str(value))
        return value

    def make(self, token="", tag="", type=None, spot=False, cap=None, drop=None, top=None, **more):
        s = dict(name="x", imageRef=self.fake.settings["image"], flavorRef=type or self.type, vpcid=VPC,
                 nics=[dict(subnet_id=SUBNET)], security_groups=[dict(id=GROUP)],
                 root_volume=dict(volumetype="SSD", size=40), availability_zone="cn-north-4a", **more)
        if tag:
            s["server_tags"] = [dict(key="rille-lease", value=tag)]
        if spot:
            s["extendparam"] = dict(chargingMode=0, marketType="spot", **({"spotPrice": cap} if cap else {}))
        s.pop(drop, None)
        return self.call("POST", "/v1/{p}/cloudservers", dict(server=s, **(top or {})),
                         **({"X_Client_Token": token} if token else {}))

    def create(self, **request):
        return self.make(**request)["serverIds"][0]

    def order(self, **request):
        got = self.make(**request)
        self.fake.control("advance", seconds=1)
        job = self.call("GET", "/v1/{p}/jobs/" + got["job_id"])
        if job["status"] == "FAIL":
            self.fake.control("advance", seconds=100)
            raise ApiError(200, job["error_code"], {}, job["fail_reason"])
        return got["serverIds"][0]

    def describe(self, id):
        try:
            s = self.call("GET", "/v1/{p}/cloudservers/" + id)["server"]
        except ApiError as e:
            if e.status == 404:
                return "gone"
            raise
        if s["OS-EXT-STS:task_state"] == "deleting":
            return "ending"
        return {"BUILD": "starting", "ACTIVE": "running", "SHUTOFF": "stopped", "ERROR": "failed"}[s["status"]]

    def list(self, tag):
        ids = []
        while True:
            got = self.call(
                "POST", "/v1/{p}/cloudservers/resource_instances/action",
                dict(action="filter", limit="100", offset=str(len(ids)), tags=[dict(key="rille-lease", values=[tag])]))
            ids += [r["resource_id"] for r in got["resources"]]
            if len(ids) >= got["total_count"]:
                return ids

    def terminate(self, id, **more):
        return self.call("POST", "/v1/{p}/cloudservers/delete", dict(servers=[dict(id=id)], **more))

    def price(self, suffix=".spot"):
        got = self.call(
            "POST", "/v2/bills/ratings/on-demand-resources",
            dict(
                project_id=self.fake.settings["project"], inquiry_precision=1, product_infos=[
                    dict(id="1", cloud_service_type="hws.service.type.ec2", resource_type="hws.resource.type.vm",
                         resource_spec=self.type + suffix + ".linux", region="cn-north-4", available_zone="cn-north-4a",
                         usage_factor="Duration", usage_value=1, usage_measure_id=4, subscription_num=1)
                ]))
        return round(got["amount"] * 1e6)

    def notice(self, id):
        token = self.fake.send("PUT", f"/_metadata/{id}/meta-data/latest/api/token",
                               {"X-Metadata-Token-Ttl-Seconds": "60"})[2].decode()
        status, _, text = self.fake.send("GET", f"/_metadata/{id}/openstack/latest/spot/instance-action",
                                         {"X-Metadata-Token": token})
        return text if status == 200 else None

    def special(self, t):
        t.equal(
            self.call("GET", "/v3/projects", query="name=cn-north-4")["projects"][0]["id"], t.fake.settings["project"])
        t.equal(len(Huawei(t.fake, **t.fake.temporary).call("GET", "/v3/projects")["projects"]), 3)
        t.code("APIGW.0301", lambda: Huawei(t.fake, HUAWEICLOUD_SDK_AK="x").list("x"))
        own = "/v3.0/OS-CREDENTIAL/credentials/"
        t.equal(self.call("GET", own + self.credentials["HUAWEICLOUD_SDK_AK"])["credential"]["status"], "active")
        t.code("IAM.0004", lambda: self.call("GET", own + "other"))
        t.code("APIGW.0101", lambda: self.call("GET", "/v1/{p}/nothing"))
        t.equal(self.price(""), 10_760_000)
        flavors = {f["id"]: f for f in self.call("GET", "/v1/{p}/cloudservers/flavors")["flavors"]}
        t.equal(json.loads(flavors["p3.16xlarge.8"]["os_extra_specs"]["info:gpus"])[0]["count"], 8)
        t.fake.control("set", stock={self.other + "@cn-north-4a": 0})
        got = self.call("GET", "/v1/{p}/cloudservers/flavor-sell-policies", query="flavor_id=" + self.other)
        t.equal(sorted({(r["availability_zone_id"], r["sell_status"]) for r in got["sell_policies"]}),
                [("cn-north-4a", "sellout"), ("cn-north-4b", "available")])
        t.equal(self.make(top=dict(dry_run=True)), {})
        id = self.create(tag="x", data_volumes=[dict(volumetype="SSD", size=10)],
                         publicip=dict(eip=dict(iptype="5_bgp")))
        t.turn(5)
        t.equal(
            len(
                self.call("GET", "/v1/{p}/cloudservers/detail",
                          query="limit=10&offset=1&tags=rille-lease%3Dx")["servers"]), 1)
        t.equal(self.call("GET", "/v1/{p}/cloudservers/detail", query="limit=10&offset=2")["servers"], [])
        t.code(
            "Ecs.0032",
            lambda: self.call("POST", f"/v1.1/{{p}}/cloudservers/{id}/resize", dict(resize=dict(flavorRef=self.other))))
        self.call("POST", "/v1/{p}/cloudservers/action", {"os-stop": dict(type="SOFT", servers=[dict(id=id)])})
        t.turn(5)
        self.call("POST", f"/v1.1/{{p}}/cloudservers/{id}/resize", dict(resize=dict(flavorRef=self.other)))
        t.equal((self.describe(id), t.machine(id)["type"]), ("stopped", self.other))
        job = self.terminate(id)["job_id"]
        t.equal(self.call("GET", "/v1/{p}/jobs/" + job)["status"], "RUNNING")
        t.turn(5)
        t.equal(self.call("GET", "/v1/{p}/jobs/" + job)["status"], "SUCCESS")
        t.code("Ecs.0114", lambda: self.terminate(id))
        t.equal(t.fake.state()["alive"], 2)
        left = self.call("GET", "/v2/{p}/cloudvolumes/detail", query="status=available&limit=10&offset=0")
        t.equal((left["count"], left["volumes"][0]["name"][-12:], left["volumes"][0]["tags"]), (1, "-volume-0001", {}))
        t.code("EVS.2000", lambda: self.call("GET", "/v2/{p}/cloudvolumes/detail", query="tag=x"))
        disk = left["volumes"][0]["id"]
        self.call("DELETE", "/v2/{p}/cloudvolumes/" + disk)
        self.call("DELETE", "/v1/{p}/publicips/" + self.call("GET", "/v1/{p}/publicips")["publicips"][0]["id"])
        t.equal(t.fake.state()["alive"], 0)
        id = self.create(data_volumes=[dict(volumetype="SSD", size=10)], publicip=dict(eip=dict(iptype="5_bgp")))
        t.turn(5)
        self.terminate(id, delete_volume=True, delete_publicip=True)
        t.turn(5)
        t.equal(t.fake.state()["alive"], 0)
        t.code("Ecs.0005", lambda: self.create(auto_terminate_time=stamp(t.wall() + 60)))
        id = self.create(auto_terminate_time=stamp(t.wall() + 3600))
        t.turn(3650)
        t.equal((self.describe(id), t.machine(id)["reason"]), ("gone", "expired"))
        self.call("POST", "/v2.1/{p}/os-keypairs", dict(keypair=dict(name="k", public_key="ssh-rsa AAAA")))
        self.create(key_name="k")
        self.disks(t)

    def disks(self, t):
        wish = dict(availability_zone="cn-north-4a", volume_type="GPSSD", size=20, name="v", tags=dict(rille="v"))
        make = lambda **more: self.call("POST", "/v2.1/{p}/cloudvolumes", dict(volume=dict(wish, **more)))
        for wrong in (dict(size=9), dict(volume_type="x"), dict(availability_zone="x"), dict(bogus=1),
                      dict(tags=dict(rille="v" * 44))):
            t.code("EVS.2000", lambda: make(**wrong))
        disk = make()["volume_ids"][0]
        path, at = "/v2/{p}/cloudvolumes/" + disk, lambda id: f"/v1/{{p}}/cloudservers/{id}/attachvolume"
        rows = lambda: self.call("GET", "/v2/{p}/cloudvolumes/detail", query="id=" + disk)["volumes"]
        seen = lambda: rows()[0]
        t.equal((seen()["status"], seen()["availability_zone"]), ("creating", "cn-north-4a"))
        t.turn(5)
        id = self.create(tag="with a disk")
        t.turn(5)
        to = dict(volumeAttachment=dict(volumeId=disk))
        self.call("POST", at(id), to)
        t.equal((seen()["status"], seen()["attachments"][0]["server_id"]), ("in-use", id))
        server = self.call("GET", "/v1/{p}/cloudservers/" + id)["server"]
        t.equal(disk in [d["id"] for d in server["os-extended-volumes:volumes_attached"]], True)
        t.code("Ecs.0312", lambda: self.call("POST", at(id), to))
        t.code("EVS.2044", lambda: self.call("DELETE", path))
        self.terminate(id)
        t.turn(5)
        t.equal(seen()["status"], "available")
        self.call("DELETE", path)
        t.equal(rows(), [])
        t.code("EVS.2024", lambda: self.call("DELETE", path))
