"""Cloud disks of alibaba.py: those of instances, and those that are made apart and attached.
https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-createdisk and its neighbours.
"""
import json

from base import Refusal

SIZES = {  # GiB, of PL1 where there are levels
    "cloud": (5, 2000), "cloud_efficiency": (20, 32768), "cloud_ssd": (20, 32768), "cloud_essd": (20, 65536),
    "cloud_auto": (1, 65536), "cloud_essd_entry": (10, 32768)
}
LEVELS = {"PL0": 1, "PL1": 20, "PL2": 461, "PL3": 1261}  # the least of each
DISKS_MAX = 17  # of an instance, the system's with them
STATES = ("In_use", "Available", "Attaching", "Detaching", "Creating", "ReIniting", "All")


class Disks:

    def checked_size(self, kind, size, level):
        if kind not in SIZES:
            raise Refusal(400, "InvalidDiskCategory.ValueNotSupported", f"The specified DiskCategory {kind} is not "
                          "supported.")
        if level and (kind != "cloud_essd" or level not in LEVELS):
            raise Refusal(400, "InvalidPerformanceLevel.Malformed", "The specified PerformanceLevel is not valid.")
        least, most = SIZES[kind]
        if not size.isdigit() or not (LEVELS[level] if level else least) <= int(size) <= most:
            raise Refusal(400, "InvalidSize.ValueNotSupported", f"The specified Size {size} is beyond the permitted "
                          f"range of {kind}.")
        return int(size)

    def price_of_disk(self, p):
        if p.get("PriceUnit", "Hour") != "Hour" or "DataDisk.1.Category" not in p or "DataDisk.1.Size" not in p:
            raise Refusal(400, "MissingParameter", "DataDisk.1.Category, DataDisk.1.Size and PriceUnit Hour.")
        size = self.checked_size(p["DataDisk.1.Category"], p["DataDisk.1.Size"], p.get("DataDisk.1.PerformanceLevel"))
        price = self.world.hourly("disk", dict(size=size)) / 1e6
        part = dict(Resource="DataDisk", OriginalPrice=price, TradePrice=price, DiscountPrice=0.0, Rules=dict(Rule=[]))
        return dict(PriceInfo=dict(
            Rules=dict(Rule=[]), Price=dict(Currency=self.currency, OriginalPrice=price, TradePrice=price,
                                            DiscountPrice=0.0, DetailInfos=dict(DetailInfo=[part]))))

    def disk_of(self, p):
        disk = self.world.things.get(p["DiskId"])
        if not disk or disk.kind != "disk" or disk.ended is not None or disk.facts["region"] != self.region:
            raise Refusal(404, "InvalidDiskId.NotFound", "The specified DiskId does not exist.")
        return disk

    def status_of(self, disk):
        if disk.facts.get("ready", 0) > self.world.now():
            return "Creating"
        if not disk.machine:
            return "Available"
        return "Attaching" if disk.facts.get("attached", 0) > self.world.now() else "In_use"

    def CreateDisk(self, p):
        from alibaba import tags_of
        from alibaba_more import ZONES
        if "InstanceId" in p or "ZoneId" not in p:
            raise Refusal(400, "MissingParameter", "The input parameter ZoneId is mandatory; InstanceId, which is for "
                          "subscriptions, is not played.")
        if p["ZoneId"] not in ZONES[self.region]:
            raise Refusal(404, "InvalidZoneId.NotFound", "The specified ZoneId does not exist.")
        kind, token = p.get("DiskCategory", "cloud"), p.get("ClientToken", "")
        size = self.checked_size(kind, p.get("Size", ""), p.get("PerformanceLevel"))
        if len(token) > 64 or not token.isascii():
            raise Refusal(400, "InvalidParameter.ClientToken", "At most 64 ASCII characters.")
        same = json.dumps({k: v for k, v in p.items() if k != "ClientToken"}, sort_keys=True)
        known = self.world.recall((self.region, "disk"), token) if token else None
        if known and known[0] != same:
            raise Refusal(400, "IdempotentParameterMismatch", "The specified parameter has changed while using an "
                          "already used clientToken.")
        if known:
            return known[1]
        made = self.world.attach("disk", "d-bp1" + self.world.word(17), tags_of(p), None, False, region=self.region,
                                 size=size, type="data", category=kind, zone=p["ZoneId"],
                                 ready=self.world.now() + 20 * self.world.start)
        reply = dict(DiskId=made.id, OrderId="")
        if token:
            self.world.remember((self.region, "disk"), token, same, reply)
        return reply

    def AttachDisk(self, p):
        disk, m = self.disk_of(p), self.here(p["InstanceId"])
        if m.phase not in ("running", "stopped"):
            raise Refusal(403, "IncorrectInstanceStatus", "The current status of the resource does not support it.")
        if self.status_of(disk) != "Available":
            raise Refusal(403, "IncorrectDiskStatus", "The current disk status does not support this operation.")
        if disk.facts.get("zone", m.zone) != m.zone:
            raise Refusal(403, "ResourcesNotInSameZone", "The specified instance and disk are not in the same zone.")
        here = [t for t in self.world.things.values() if t.kind == "disk" and t.machine == m.id and t.ended is None]
        if len(here) >= DISKS_MAX:
            raise Refusal(403, "InstanceDiskLimitExceeded", "The amount of the disk on instance in question reach its "
                          "limits.")
        disk.machine, disk.dies_with = m.id, p.get("DeleteWithInstance") == "true"
        disk.facts["attached"] = self.world.now() + self.world.start
        return {}

    def DetachDisk(self, p):
        disk, m = self.disk_of(p), self.here(p["InstanceId"])
        if disk.machine != m.id or disk.facts["type"] == "system":
            raise Refusal(403, "IncorrectDiskStatus", "The current disk status does not support this operation.")
        disk.machine = None
        return {}

    def DescribeDisks(self, p):
        tags, wanted = self.wanted_tags(p), None
        if p.get("Status", "All") not in STATES:
            raise Refusal(400, "InvalidStatus.NotFound", "The specified Status is not valid.")
        if "DiskIds" in p:
            try:
                wanted = json.loads(p["DiskIds"])
            except ValueError:
                wanted = {}
            if not isinstance(wanted, list) or len(wanted) > 100:
                raise Refusal(400, "InvalidDiskIds.Malformed", "It is a JSON array of at most 100.")
        rows = [
            t for t in self.world.things.values() if t.kind == "disk" and t.ended is None and
            t.facts["region"] == self.region and (wanted is None or t.id in wanted) and
            p.get("InstanceId", t.machine) == t.machine and
            all(k in t.tags and v in (None, t.tags[k])
                for k, v in tags.items()) and p.get("Status", "All") in ("All", self.status_of(t))
        ]
        rows, cursor, total = self.rows_of(p, rows)
        return dict(
            NextToken=cursor, TotalCount=total, Disks=dict(Disk=[
                dict(
                    DiskId=t.id, Size=t.facts["size"], Type=t.facts["type"], Status=self.status_of(t),
                    Category=t.facts.get("category", "cloud_essd"), ZoneId=t.facts.get("zone", ""),
                    InstanceId=t.machine or "", DeleteWithInstance=t.dies_with, SerialNumber=t.id[2:],
                    Tags=dict(Tag=[dict(TagKey=k, TagValue=v) for k, v in t.tags.items()])) for t in rows
            ]))

    def DeleteDisk(self, p):
        disk = self.disk_of(p)
        if self.status_of(disk) != "Available":
            raise Refusal(403, "IncorrectDiskStatus", "The current disk status does not support this operation.")
        disk.ended = self.world.now()
        return {}
