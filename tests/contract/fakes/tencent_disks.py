"""Cloud disks (CBS) of tencent.py: those of instances, and those that are made apart and attached. By the models of
Tencent's SDK and https://www.tencentcloud.com/document/product/362/2353, which has the sizes.
"""
from base import Refusal

SIZES = {  # GiB
    "CLOUD_PREMIUM": (10, 32000), "CLOUD_BSSD": (20, 32000), "CLOUD_SSD": (20, 32000), "CLOUD_HSSD": (20, 32000)
}
STATES = ("UNATTACHED", "ATTACHING", "ATTACHED", "DETACHING", "EXPANDING", "ROLLBACKING", "TORECYCLE", "DUMPING")
DISKS_MAX = 20  # data disks of an instance


class Disks:

    def checked_disk(self, p):
        if p["DiskChargeType"] != "POSTPAID_BY_HOUR":
            raise Refusal(200, "InvalidParameterValue", "Only POSTPAID_BY_HOUR is sold here.")
        least, most = SIZES.get(p["DiskType"], (0, -1))
        if not isinstance(p["DiskSize"], int) or not least <= p["DiskSize"] <= most:
            raise Refusal(200, "InvalidParameter.DiskConfigNotSupported",
                          f"A {p['DiskType']} of {p['DiskSize']} GiB is not sold here.")
        if not isinstance(p.get("DiskCount", 1), int) or not 1 <= p.get("DiskCount", 1) <= 20:
            raise Refusal(200, "InvalidParameterValue.LimitExceeded", "1 to 20 disks.")

    def InquiryPriceCreateDisks(self, p):
        self.checked_disk(p)
        price = self.world.hourly("disk", dict(size=p["DiskSize"])) / 1e6 * p.get("DiskCount", 1)
        return dict(DiskPrice=dict(UnitPrice=price, UnitPriceDiscount=price, UnitPriceHigh=str(price),
                                   UnitPriceDiscountHigh=str(price), ChargeUnit="HOUR"))

    def CreateDisks(self, p):
        from tencent_more import ZONES
        token = p.get("ClientToken", "")
        if len(token) > 64 or not token.isascii() or len(p.get("DiskName", "").encode()) > 60:
            raise Refusal(200, "InvalidParameterValue", "The ClientToken or the DiskName is too long.")
        known = self.world.recall((self.region, "disk"), token) if token else None
        if known:
            return dict(DiskIdSet=known[1])
        self.checked_disk(p)
        zone = p["Placement"]["Zone"]
        if zone not in ZONES[self.region]:
            raise Refusal(200, "InvalidParameterValue", f"The zone `{zone}` does not exist.")
        tags = {t["Key"]: t.get("Value", "") for t in p.get("Tags", [])}
        if any(not 1 <= len(k) <= 127 or len(v) > 255 for k, v in tags.items()):
            raise Refusal(200, "InvalidParameterValue", "A tag is not valid.")
        ids = [
            self.world.attach("disk", "disk-" + self.world.word(8), tags, None, False, region=self.region,
                              size=p["DiskSize"], usage="DATA_DISK", zone=zone, type=p["DiskType"],
                              ready=self.world.now() + 20 * self.world.start).id for _ in range(p.get("DiskCount", 1))
        ]
        if token:
            self.world.remember((self.region, "disk"), token, "", ids)
        return dict(DiskIdSet=ids)

    def state_of(self, t):
        if not t.machine:
            return "UNATTACHED"
        return "ATTACHING" if t.facts.get("attached", 0) > self.world.now() else "ATTACHED"

    def disk_of(self, id):
        t = self.world.things.get(id)
        if not t or t.kind != "disk" or t.ended is not None or t.facts["region"] != self.region or \
                t.facts.get("ready", 0) > self.world.now():
            raise Refusal(200, "InvalidDiskId.NotFound", f"The disk `{id}` does not exist.")
        return t

    def AttachDisks(self, p):
        m, disks = self.here(p["InstanceId"]), [self.disk_of(i) for i in p["DiskIds"]]
        if m.phase not in ("running", "stopped"):
            raise Refusal(200, "UnsupportedOperation.StateError", f"`{m.id}` cannot have a disk now.")
        for t in disks:
            if t.machine:
                raise Refusal(200, "ResourceUnavailable.Attached", f"The disk `{t.id}` is attached.")
            if t.facts.get("zone") != m.zone:
                raise Refusal(200, "ResourceUnavailable.ZoneNotMatch",
                              "The disk and the instance are not in the same zone.")
        here = [t for t in self.world.things.values() if t.machine == m.id and t.facts.get("usage") == "DATA_DISK"]
        if len(disks) > 10 or len(here) + len(disks) > DISKS_MAX:
            raise Refusal(200, "LimitExceeded.InstanceAttachedDisk", "The instance has too many disks.")
        for t in disks:
            t.machine, t.dies_with = m.id, bool(p.get("DeleteWithInstance"))
            t.facts["attached"] = self.world.now() + self.world.start
        return {}

    def DetachDisks(self, p):
        disks = [self.disk_of(i) for i in p["DiskIds"]]
        for t in disks:
            if not t.machine or t.facts["usage"] == "SYSTEM_DISK":
                raise Refusal(200, "InvalidDisk.NotPortable", f"The disk `{t.id}` is not attached, or is the system's.")
        for t in disks:
            t.machine = None
        return {}

    def DescribeDisks(self, p):
        f = self.filters(p, ("tag-key", "tag-value", "disk-usage", "disk-state", "instance-id", "disk-id", "zone"))
        if set(f.get("disk-state", [])) - set(STATES):
            raise Refusal(200, "InvalidParameterValue", f"The disk-state {f['disk-state']} does not exist.")
        rows = [
            t for t in self.world.things.values()
            if t.kind == "disk" and t.ended is None and t.facts["region"] == self.region and
            t.facts.get("ready", 0) <= self.world.now() and t.id in p.get("DiskIds", [t.id]) and
            t.id in f.get("disk-id", [t.id]) and (not f.get("tag-key") or set(f["tag-key"]) & set(t.tags)) and
            (not f.get("tag-value") or set(f["tag-value"]) & set(t.tags.values())) and
            self.state_of(t) in f.get("disk-state", STATES) and t.machine in f.get("instance-id", [t.machine])
        ]
        rows, total = self.part(p, rows)
        return dict(
            TotalCount=total, DiskSet=[
                dict(DiskId=t.id, DiskSize=t.facts["size"], DiskUsage=t.facts["usage"], InstanceId=t.machine or "",
                     DiskState=self.state_of(t), DeleteWithInstance=t.dies_with, Attached=bool(t.machine),
                     Placement=dict(Zone=t.facts.get("zone", ""), ProjectId=0), Portable=t.facts["usage"] ==
                     "DATA_DISK", Tags=[dict(Key=k, Value=v) for k, v in t.tags.items()]) for t in rows
            ])

    def TerminateDisks(self, p):
        for t in [self.disk_of(i) for i in p["DiskIds"]]:
            if t.machine:
                raise Refusal(200, "InvalidDisk.Attached", f"The disk `{t.id}` is attached.")
            t.ended = self.world.now()
        return {}
