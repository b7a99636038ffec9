"""Disks of gcp.py: made with an instance or by themselves, attached to a running or a stopped instance, deleted where
no instance has them. https://cloud.google.com/compute/docs/reference/rest/v1/disks, .../instances/attachDisk
"""
import re

from base import Refusal, Reply
from rules import Rules, flatten

PERSISTENT = ("pd-standard", "pd-balanced", "pd-ssd")  # what a type takes, unless its row says otherwise
NEWER = ("pd-balanced", "pd-ssd", "hyperdisk-balanced")  # what A3 takes; G2 the first two
KINDS = {"pd-standard": 10, "pd-balanced": 10, "pd-ssd": 10, "hyperdisk-balanced": 4}  # the least GB of each
DISK = Rules("!name description sizeGb type labels.* physicalBlockSizeBytes diskEncryptionKey.* resourcePolicies.N "
             "provisionedIops provisionedThroughput sourceImage accessMode")
ATTACHED = Rules("!source deviceName mode autoDelete boot type interface diskSizeGb index diskEncryptionKey.*")


class Disks:

    def disk(self, t):
        new = t.facts.get("ready", 0) > self.world.now()
        zone = "zones/" + t.facts["zone"]
        return dict(kind="compute#disk", name=t.facts["name"], sizeGb=t.facts["size"], labels=t.tags,
                    status="CREATING" if new else "READY", zone=self.link(zone),
                    type=self.link(f"{zone}/diskTypes/{t.facts.get('type', 'pd-balanced')}"),
                    users=[self.link(f"{zone}/instances/{t.machine}")] if t.machine else [])

    def disk_of(self, zone, name):
        t = self.world.things.get(f"{zone}/{name}")
        if not t or t.ended is not None:
            raise self.absent(f"projects/{self.project}/zones/{zone}/disks/{name}")
        return t

    def getDisk(self, request):
        return Reply(200, self.disk(self.disk_of(self.place["zone"], self.place["name"])))

    def used(self, t):
        zone = f"projects/{self.project}/zones/{t.facts['zone']}"
        return (f"The disk resource '{zone}/disks/{t.facts['name']}' is already being used by "
                f"'{zone}/instances/{t.machine}'")

    def deleteDisk(self, request):
        t = self.disk_of(self.place["zone"], self.place["name"])
        if t.machine:
            raise Refusal(400, "resourceInUseByAnotherResource", self.used(t), word="INVALID_ARGUMENT")
        t.ended = self.world.now()
        return Reply(200, self.operation_view(self.operation("deleteDisk", None, t.facts["zone"], self.link("disks"))))

    def insertDisk(self, request):
        known = self.once(request, "insertDisk")
        if known:
            return known
        p, zone = request.json() or {}, self.place["zone"]
        wrong = DISK.unknown(flatten(p)) or DISK.missing(flatten(p))
        if wrong or not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", str(p["name"])):
            raise self.invalid(f"Invalid value for field 'resource.{wrong or 'name'}'.")
        place, _, kind = p.get("type", f"zones/{zone}/diskTypes/pd-standard").rpartition("/diskTypes/")
        if not place.endswith("zones/" + zone) or kind not in KINDS:
            raise self.invalid(f"Invalid value for field 'resource.type': '{p['type']}'. The referenced diskType "
                               "resource cannot be found.")
        size = str(p.get("sizeGb", "500"))
        if not size.isdigit() or not KINDS[kind] <= int(size) <= 65536:
            raise self.invalid(f"Invalid value for field 'resource.sizeGb': '{size}'. Disk size cannot be smaller than "
                               f"{KINDS[kind]} GB, nor larger than 65536 GB.")
        self.check_labels(p.get("labels") or {})
        id, target = f"{zone}/{p['name']}", self.link(f"zones/{zone}/disks/{p['name']}")
        if id in self.world.things and self.world.things[id].ended is None:
            raise Refusal(409, "alreadyExists", f"The resource 'projects/{self.project}/zones/{zone}/disks/"
                          f"{p['name']}' already exists", word="ALREADY_EXISTS")
        self.world.attach("disk", id, p.get("labels") or {}, None, False, zone=zone, name=p["name"], size=size,
                          type=kind, ready=self.world.now() + self.world.start)
        return self.said(request, "insertDisk", self.operation("insert", None, zone, target))

    def attachDisk(self, request):
        m, p = self.need(request), request.json() or {}
        wrong = ATTACHED.unknown(flatten(p)) or ATTACHED.missing(flatten(p))
        place = re.search(r"(^|/)zones/([^/]+)/disks/([^/]+)$", str(p.get("source", "")))
        if wrong or not place or place[2] != m.zone:
            raise self.invalid(f"Invalid value for field 'resource.{wrong or 'source'}': '{p.get('source')}'.")
        if p.get("mode", "READ_WRITE") not in ("READ_WRITE", "READ_ONLY") or p.get("boot"):
            raise self.invalid("Invalid value for field 'resource.mode' or 'resource.boot'.")
        t = self.disk_of(m.zone, place[3])
        if m.phase not in ("running", "stopped"):
            raise Refusal(400, "resourceNotReady", f"The resource 'projects/{self.project}/zones/{m.zone}/instances/"
                          f"{m.name}' is not ready", word="INVALID_ARGUMENT")
        kind, takes = t.facts.get("type", "pd-balanced"), self.types[m.type].facts.get("disks", PERSISTENT)
        if kind not in takes:
            raise Refusal(400, "badRequest", f"{kind} disk type cannot be used by {m.type} machine type.",
                          word="INVALID_ARGUMENT")
        device = p.get("deviceName") or t.facts["name"]
        here = [d for d in self.world.things.values() if d.kind == "disk" and d.machine == m.id and d.ended is None]
        if device in [d.facts.get("device") for d in here]:
            raise self.invalid(f"Invalid value for field 'resource.deviceName': '{device}'. It is in use.")
        target, error = self.link(f"zones/{m.zone}/instances/{m.name}"), None
        if t.machine or t.facts.get("ready", 0) > self.world.now():
            error = Refusal(400, "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", self.used(t)) if t.machine else \
                Refusal(400, "RESOURCE_NOT_READY", f"The disk '{t.facts['name']}' is not ready")
        else:
            t.machine, t.facts["device"], t.dies_with = m.id, device, p.get("autoDelete", False)
        return Reply(200, self.operation_view(self.operation("attachDisk", m, m.zone, target, error)))
