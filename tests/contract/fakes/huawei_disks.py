"""Disks (EVS) of huawei.py: those of servers, and volumes, which are made apart and attached. By the models of Huawei's
SDK and https://support.huaweicloud.com/intl/en-us/api-evs/evs_04_2003.html. Assumed: that an unknown disk gets EVS.2024
also when it is attached.
"""
import re

from base import Refusal
from rules import Rules, flatten

CREATE = Rules(
    "!volume.availability_zone !volume.volume_type volume.size volume.name volume.count volume.description "
    "volume.metadata.* volume.tags.* volume.multiattach volume.snapshot_id volume.backup_id volume.imageRef "
    "volume.enterprise_project_id bssParam.* server_id dry_run")
KINDS = ("GPSSD", "SSD", "SAS", "ESSD", "SATA")
DISKS_MAX = 24  # of a server, the system's with them


class Disks:

    def evs_bad(self, message):
        return Refusal(400, "EVS.2000", message)

    def price_of_disk(self, q):
        if q.get("resource_type") != "hws.resource.type.volume" or q.get("resource_spec") not in KINDS or \
                q.get("size_measure_id") != 17 or q.get("usage_measure_id") != 4 or \
                not isinstance(q.get("resource_size"), int) or q.get("region") not in self.projects:
            raise Refusal(400, "CBC.99006006", f"The product does not exist: {q}")
        return self.world.hourly("disk", dict(size=q["resource_size"])) / 1e6 * q.get("subscription_num", 1)

    def createVolume(self, p, request):
        from huawei_more import ZONES
        token = request.header("X-Client-Token")
        if token and not re.fullmatch(r"[0-9a-f-]{36}", token):
            raise self.evs_bad("X-Client-Token is not a UUID.")
        known = self.world.recall((self.region, "disk"), token) if token else None
        if known:
            return 202, known[1]
        flat = flatten(p)
        if CREATE.unknown(flat) or CREATE.missing(flat):
            raise self.evs_bad(f"A parameter is not known or missing: {CREATE.unknown(flat) or CREATE.missing(flat)}.")
        v = p["volume"]
        if v["availability_zone"] not in ZONES[self.region] or v["volume_type"] not in KINDS:
            raise self.evs_bad(f"{v['availability_zone']} has no disks of the type {v['volume_type']}.")
        if not isinstance(v.get("size"), int) or not 10 <= v["size"] <= 32768 or v.get("count", 1) != 1:
            raise self.evs_bad("The size is 10 to 32768 GiB; here one disk is made at a time.")
        for key, value in (v.get("tags") or {}).items():
            if not re.fullmatch(r"[^\x00-\x1f=*<>\\,|/]{1,36}", key) or len(value) > 43:
                raise self.evs_bad(f"The tag {key} is not valid.")
        made = self.world.attach("disk", self.world.uuid(), v.get("tags") or {}, None, False, region=self.region,
                                 size=v["size"], name=v.get("name", ""), zone=v["availability_zone"], data=True,
                                 ready=self.world.now() + 20 * self.world.start)
        reply = dict(job_id=self.job("createVolume", []), volume_ids=[made.id])
        if token:
            self.world.remember((self.region, "disk"), token, "", reply)
        return 202, reply

    def volume_of(self, id):
        thing = next((t for t in self.left_over("disk") if t.id == id), None)
        if not thing:
            raise Refusal(404, "EVS.2024", f"Volume {id} could not be found.")
        return thing

    def detail(self, t):
        new = t.facts.get("ready", 0) > self.world.now()
        return dict(id=t.id, name=t.facts["name"], status="creating" if new else "in-use" if t.machine else "available",
                    size=t.facts["size"], tags=t.tags, availability_zone=t.facts.get("zone", ""),
                    attachments=[dict(server_id=t.machine, volume_id=t.id)] if t.machine else [])

    def attachVolume(self, p, request):
        m, wanted = self.here(self.place["id"]), p.get("volumeAttachment") or {}
        if set(p) - {"volumeAttachment", "dry_run"} or not wanted.get("volumeId") or set(wanted) - {
                "volumeId", "device", "volume_type", "count", "hw:passthrough"
        }:
            raise self.bad("The parameter volumeAttachment is not valid.")
        t = self.volume_of(wanted["volumeId"])
        if m.phase not in ("running", "stopped"):
            raise self.bad("The server cannot have a disk now.", "Ecs.0037")
        if self.detail(t)["status"] != "available" or t.facts.get("zone") != m.zone:
            raise self.bad(f"Volume {t.id} is {self.detail(t)['status']}, or in another zone.", "Ecs.0312")
        if len(self.disks_of(m)) >= DISKS_MAX:
            raise self.bad("The server has too many disks.", "Ecs.0041")
        t.machine, t.dies_with = m.id, False
        return 200, dict(job_id=self.job("attachVolume", []))

    def disks_of(self, m):
        return [t for t in self.world.things.values() if t.kind == "disk" and t.machine == m.id and t.ended is None]

    def listVolumes(self, p, request):
        """Here `offset` counts rows."""
        unknown = {n for n, _ in request.query} - {
            "marker", "name", "limit", "sort_key", "offset", "sort_dir", "status", "metadata", "availability_zone",
            "multiattach", "service_type", "dedicated_storage_id", "dedicated_storage_name", "volume_type_id", "id",
            "ids", "enterprise_project_id"
        }
        if unknown:
            raise Refusal(400, "EVS.2000", f"The parameter {sorted(unknown)} is not known.")
        rows = [self.detail(t) for t in self.left_over("disk")]
        rows = [r for r in rows if all(request.arg(n, r[n]) == r[n] for n in ("id", "status", "name"))]
        rows = [r for row in rows for r in ([row, row] if self.duplicate else [row])]
        limit = min(int(request.arg("limit", "1000")), self.world.page_size or 1000)
        start = int(request.arg("offset", "0"))
        return 200, dict(count=len(rows), volumes=rows[start:start + limit])

    def deleteVolume(self, p, request):
        return self.delete_thing("disk", "EVS.2024")
