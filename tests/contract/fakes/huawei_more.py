"""What huawei.py has beside servers: projects, flavors, stock, prices, keys, disks, addresses, limits, metadata."""
import json

from base import Refusal, Reply
from rules import Rules
from world import RESERVED, YEAR_H, stamp

ZONES = {
    "cn-north-4": ["cn-north-4a", "cn-north-4b"], "cn-east-3": ["cn-east-3a"], "ap-southeast-3": ["ap-southeast-3a"]
}
IMAGE, VPC = "67f433d8-ed0e-4321-a8a2-a71838539e09", "0dae26c9-9a70-4392-93f3-87d53115d171"
SUBNET, GROUP = "157ee789-03ea-45b1-a698-76c92660dd83", "f0ac4394-7e4a-4409-9701-ba8be283dbc3"
SERVER = Rules(
    "!server.name !server.imageRef !server.flavorRef !server.vpcid !server.nics.N.subnet_id "
    "!server.root_volume.volumetype "
    "server.nics.N.ip_address server.security_groups.N.id server.root_volume.size server.root_volume.metadata.* "
    "server.data_volumes.N.volumetype server.data_volumes.N.size server.data_volumes.N.metadata.* "
    "server.availability_zone "
    "server.key_name server.adminPass server.user_data server.count server.metadata.* server.tags.N "
    "server.server_tags.N.key "
    "server.server_tags.N.value server.publicip.id server.publicip.eip.* server.publicip.delete_on_termination "
    "server.auto_terminate_time server.description server.isAutoRename server.extendparam.chargingMode "
    "server.extendparam.regionID server.extendparam.marketType server.extendparam.spotPrice "
    "server.extendparam.interruption_policy server.extendparam.spot_duration_hours "
    "server.extendparam.spot_duration_count "
    "server.extendparam.support_auto_recovery server.extendparam.enterprise_project_id dry_run")


class More:

    def listProjects(self, p, request):
        name = request.arg("name")
        domain = f"{self.seed:x}".rjust(32, "d")
        rows = [
            dict(id=i, name=r, domain_id=domain, enabled=True, is_domain=False, parent_id=domain, description="",
                 links=dict(self="")) for r, i in self.projects.items() if name in (None, r)
        ]
        return 200, dict(projects=rows, links=dict(self="", next=None, previous=None))

    def sold(self, t, zone):
        return zone in t.facts.get("zones", [zone])

    def listFlavors(self, p, request):
        rows = []
        for t in self.types.values():
            zones = [z for z in ZONES[self.region] if self.sold(t, z) and request.arg("availability_zone", z) == z]
            if not zones:
                continue
            state = lambda z: "sellout" if self.world.left(t.name, z) == 0 else "normal"
            told = {"ecs:performancetype": "gpu" if t.count else "normal"}
            if "status" in t.facts:  # of all zones, none is named
                told["cond:operation:status"] = t.facts["status"]
            elif t.facts.get("terse"):  # a zone that is not named is as the status, and that is normal
                told.update({"cond:operation:az": a for a in [", ".join(
                    f"{z}({state(z)})" for z in ZONES[self.region] if state(z) != "normal")] if a})
            else:
                told.update({"cond:operation:status": "normal", "cond:operation:az":
                             ",".join(f"{z}({state(z)})" for z in zones)})
            if t.spot is not None and t.facts.get("terse"):
                told["cond:spot:operation:status"] = "normal"
                told.update({"cond:spot:operation:az": a for a in [told.get("cond:operation:az")] if a})
            elif t.spot is not None and "status" not in t.facts:
                told.update({
                    "cond:spot:operation:status": "normal",
                    "cond:spot:operation:az": ",".join(f"{z}({state(z)})" for z in zones)
                })
            if "architecture" in t.facts:
                told["ecs:instance_architecture"] = t.facts["architecture"]
            if t.count:
                told.update({
                    "info:gpu:name": f"{t.count} * NVIDIA {t.gpu} / {t.count} * {t.gpu_gib}G",
                    "pci_passthrough:gpu_specs": f"{t.gpu.lower()}:direct:{t.count}",
                    "info:gpus": json.dumps([dict(name=f"NVIDIA {t.gpu}", count=t.count, memory_mb=t.gpu_gib * 1024)])
                })
            rows.append(
                dict(id=t.name, name=t.name, vcpus=str(t.vcpus), ram=t.memory_gib * 1024, disk="0",
                     os_extra_specs=told))
        rows = [dict(rows[0], id=f"old{n}.large.2", os_extra_specs={"cond:operation:status": "abandon"})
                for n in range(self.abandoned)] + rows
        if request.arg("marker"):  # the last flavor of the page before
            rows = rows[next(n for n, r in enumerate(rows, 1) if r["id"] == request.arg("marker")):]
        return 200, dict(flavors=rows[:min(int(request.arg("limit", "1000")), 1000)])

    def listSellPolicies(self, p, request):
        rows = []
        for t in self.types.values():
            for zone in ZONES[self.region]:
                for mode in ("postPaid", "spot"):
                    row = dict(flavor_id=t.name, availability_zone_id=zone, sell_mode=mode,
                               sell_status="sellout" if self.world.left(t.name, zone) == 0 else "available")
                    if self.sold(t, zone) and (mode != "spot" or t.spot is not None) and all(
                            request.arg(k, row[k]) == row[k]
                            for k in ("flavor_id", "sell_status", "sell_mode", "availability_zone_id")):
                        options = dict(spot_options=dict(longest_spot_duration_hours=6, largest_spot_duration_count=1))
                        rows.append(dict(row, id=len(rows), **(options if mode == "spot" else {})))
        return 200, dict(sell_policies=rows, count=len(rows))

    international, abandoned = False, 0

    def set(self, values):
        self.international = values.pop("international", self.international)
        self.abandoned = values.pop("abandoned", self.abandoned)
        super().set(values)

    def check_site(self, request):
        """The account is the international site's, whose host is another name of this one."""
        if self.international and not request.header("Host").startswith("localhost"):
            raise Refusal(403, "CBC.0156", "The current site does not support the account.")

    def ratePrices(self, p, request):
        self.check_site(request)
        total, rows = 0, []
        if p.get("project_id") not in self.projects.values():
            raise Refusal(400, "CBC.0100", "project_id is not valid")
        for q in p.get("product_infos") or []:
            if q.get("cloud_service_type") == "hws.service.type.ebs":
                total += self.price_of_disk(q)
                rows.append(dict(id=q.get("id"), product_id="00301-ebs", amount=total, measure_id=1))
                continue
            flavor, _, system = q.get("resource_spec", "").rpartition(".")
            spot = flavor.endswith(".spot")
            flavor = flavor.removesuffix(".spot")
            kind = (q.get("cloud_service_type"), q.get("resource_type"))
            if kind != ("hws.service.type.ec2", "hws.resource.type.vm") or \
                    q.get("region") not in ZONES or flavor not in self.types or system not in ("linux", "win") or \
                    q.get("usage_factor") != "Duration" or q.get("usage_measure_id") != 4:
                raise Refusal(400, "CBC.99006006", f"The product does not exist: {q}")
            price = self.price(flavor, spot, q["region"]) / 1e6 * float(q.get("usage_value", 1)) * q.get(
                "subscription_num", 1)
            total += price
            rows.append(
                dict(id=q.get("id"), product_id="00301-" + flavor, amount=price, discount_amount=0, measure_id=1,
                     official_website_amount=price))
        return 200, dict(amount=total, discount_amount=0, official_website_amount=total, measure_id=1,
                         currency=self.currency, product_rating_results=rows)

    def rateYears(self, p, request):
        rows = []
        for q in p.get("product_infos") or []:
            flavor, _, system = q.get("resource_spec", "").rpartition(".")
            years = q.get("period_num")
            if flavor not in self.types or system != "linux" or q.get("period_type") != 3 or years not in RESERVED or \
                    q.get("region") not in ZONES or p.get("project_id") not in self.projects.values():
                raise Refusal(400, "CBC.99006006", f"The product does not exist: {q}")
            price = self.price(flavor, False, q["region"]) / 1e6 * YEAR_H * years * RESERVED[years]
            rows.append(dict(id=q.get("id"), product_id="00301-" + flavor, official_website_amount=price, measure_id=1))
        return 200, dict(
            currency=self.currency, official_website_rating_result=dict(
                official_website_amount=sum(r["official_website_amount"] for r in rows), measure_id=1,
                product_rating_results=rows))

    def showCredential(self, p, request):
        """The caller's own, which every user may ask for."""
        if self.place["id"] != self.key:
            raise Refusal(404, "IAM.0004", f"Could not find credential: {self.place['id']}.")
        made = stamp(self.key_made(), "%Y-%m-%dT%H:%M:%S.123000Z")
        return 200, dict(credential=dict(user_id="u" * 32, access=self.key, status="active", create_time=made,
                                         last_use_time=made, description=""))

    def showLimits(self, p, request):
        most = 100 if self.world.quota is None else self.world.quota
        return 200, dict(absolute=dict(maxTotalInstances=most, maxTotalCores=8 * most, maxTotalRAMSize=most *
                                       65536, totalInstancesUsed=len(self.world.alive()), totalCoresUsed=0,
                                       totalRAMUsed=0, maxTotalSpotInstances=most, maxTotalSpotCores=8 * most))

    def createKeypair(self, p, request):
        key = p.get("keypair") or {}
        if not key.get("name") or not key.get("public_key", "").startswith(("ssh-rsa ", "ssh-ed25519 ")):
            raise self.bad("The key pair is not valid.", "Ecs.0204")
        if key["name"] in self.named:
            raise Refusal(409, "Ecs.0205", f"Key pair {key['name']} already exists.")
        self.named[key["name"]] = self.world.attach("key", key["name"], {}, None, False, False)
        return 200, dict(keypair=dict(name=key["name"], public_key=key["public_key"], fingerprint="00"))

    def deleteKeypair(self, p, request):
        thing = self.named.pop(self.place["id"], None)
        if not thing:
            raise Refusal(404, "Ecs.0217", "Key pair does not exist.")
        thing.ended = self.world.now()
        return 202, None

    def left_over(self, kind):
        return [
            t for t in self.world.things.values()
            if t.kind == kind and t.ended is None and t.facts["region"] == self.region
        ]

    def delete_thing(self, kind, code):
        thing = next((t for t in self.left_over(kind) if t.id == self.place["id"]), None)
        if not thing:
            raise Refusal(404, code, f"The {kind} does not exist.")
        if thing.machine and kind == "disk":
            raise Refusal(400, "EVS.2044", "The disk is in use.")
        thing.ended = self.world.now()
        return 204 if kind == "address" else 200, None if kind == "address" else dict(
            job_id=self.job("deleteVolume", []))

    def listAddresses(self, p, request):
        rows = [
            dict(id=t.id, status="ACTIVE" if t.machine else "DOWN", public_ip_address="127.0.0.1")
            for t in self.left_over("address")
        ]
        return 200, dict(publicips=rows)

    def deleteAddress(self, p, request):
        return self.delete_thing("address", "VPC.0504")

    def metadata(self, request, machine, path):
        """Where the notice stands is known from one source only. URL/_metadata/ID stands for http://169.254.169.254."""
        if path == "/meta-data/latest/api/token":
            if request.method != "PUT" or not request.header("X-Metadata-Token-Ttl-Seconds").isdigit():
                return Reply(400, "", "text/plain")
            machine.facts["imds"] = self.world.word(40)
            return Reply(200, machine.facts["imds"], "text/plain")
        if request.header("X-Metadata-Token", "-") != machine.facts.get("imds"):
            return Reply(401, "", "text/plain")
        if path == "/openstack/latest/spot/instance-action" and machine.noticed():
            return Reply(200, dict(action="terminate"))
        return Reply(404, "", "text/plain")
