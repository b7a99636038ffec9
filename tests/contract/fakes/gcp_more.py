"""What gcp.py has beside instances and disks: lists with filters, catalogue, quotas, prices by component, metadata."""
import re, time

from base import Reply
from gcp_disks import NEWER
from world import RESERVED, Type

ZONES = {
    "us-central1": ["us-central1-a", "us-central1-b"], "europe-west4": ["europe-west4-a"],
    "asia-east1": ["asia-east1-a"]
}
FAMILIES = {
    "N1": (31_611, 4_237), "G2": (24_988, 2_927), "A2": (31_611, 4_237), "A3": (29_310, 2_555), "E2": (21_811, 2_923),
    "C4": (34_780, 3_950), "T2A": (10_000, 1_000), "A3Plus": (26_924, 2_344), "A3Ultra": (26_924, 2_344),
    "G4": (24_988, 2_927), "N2D": (27_502, 3_686), "C2D": (29_563, 3_959)
}
PROCESSORS = {"N1": "Predefined ", "N2D": "AMD ", "C2D": "AMD ", "T2A": "Arm "}  # words after the family in the list
SHARED = {"e2-micro": 0.25, "e2-small": 0.5, "e2-medium": 1}  # vCPUs that are paid; the machine has two
GPUS = {
    "nvidia-tesla-t4": ("Nvidia Tesla T4 GPU", 350_000, 16, 4), "nvidia-l4": ("Nvidia L4 GPU", 560_040, 24, 8),
    "nvidia-tesla-a100": ("Nvidia Tesla A100 GPU", 2_933_908, 40, 16),
    "nvidia-h100-80gb": ("Nvidia H100 80GB GPU", 9_796_550, 80, 8),
    "nvidia-h100-mega-80gb": ("Nvidia H100 80GB Mega GPU", 10_344_276, 80, 8),
    "nvidia-h200-141gb": ("H200 141GB GPU", 9_311_740, 141, 8),
    "nvidia-b200": ("A4 Nvidia B200 (1 gpu slice)", 16_110_000, 180, 8),  # with its part of the machine
    "nvidia-rtx-pro-6000": ("RTX 6000 96GB", 2_100_000, 96, 8)
}
SPOT = 0.4


def sum_of(name, gpu, count, vcpus, memory, share=1):
    gpus = int(GPUS[gpu][1] * share) * count if gpu else 0
    if name.startswith("a4-"):
        return gpus
    family = {"a3-megagpu-8g": "A3Plus", "a3-ultragpu-8g": "A3Ultra"}.get(name, name.partition("-")[0].upper())
    core, ram = FAMILIES[family]
    return int(SHARED.get(name, vcpus) * int(core * share)) + memory * int(ram * share) + gpus


def machine(name, gpu, count, vcpus, memory, **facts):
    price, spot = (sum_of(name, gpu, count, vcpus, memory, share) for share in (1, SPOT))
    return Type(name, gpu, count, GPUS[gpu][2] if gpu else 0, vcpus, memory, price, spot, **facts)


TYPES = [
    machine("n1-standard-4", "", 0, 4, 15),
    machine("n1-standard-4+nvidia-tesla-t4:1", "nvidia-tesla-t4", 1, 4, 15),
    machine("n1-standard-4+nvidia-tesla-t4:2", "nvidia-tesla-t4", 2, 4, 15),
    machine("g2-standard-4", "nvidia-l4", 1, 4, 16, disks=NEWER[:2]),
    machine("g2-standard-24", "nvidia-l4", 2, 24, 96, disks=NEWER[:2]),
    machine("a2-highgpu-1g", "nvidia-tesla-a100", 1, 12, 85),
    machine("a2-highgpu-8g", "nvidia-tesla-a100", 8, 96, 680),
    machine("a3-highgpu-1g", "nvidia-h100-80gb", 1, 26, 234, disks=NEWER),
    machine("a3-highgpu-8g", "nvidia-h100-80gb", 8, 208, 1872, zones=["us-central1-a"], disks=NEWER),
    machine("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8, 208, 1872, disks=NEWER),
    machine("a3-ultragpu-8g", "nvidia-h200-141gb", 8, 224, 2952, disks=("hyperdisk-balanced", "hyperdisk-extreme")),
    machine("a4-highgpu-8g", "nvidia-b200", 8, 224, 3968, disks=("hyperdisk-balanced", "hyperdisk-extreme")),
    machine("g4-standard-48", "nvidia-rtx-pro-6000", 1, 48, 180, disks=("hyperdisk-balanced", "hyperdisk-extreme")),
    machine("n2d-standard-8", "", 0, 8, 32),
    machine("c2d-standard-8", "", 0, 8, 32),
    machine("e2-standard-2", "", 0, 2, 8),
    machine("e2-medium", "", 0, 2, 4),
    machine("c4-standard-4", "", 0, 4, 15, disks=("hyperdisk-balanced", "hyperdisk-extreme")),
    machine("t2a-standard-2", "", 0, 2, 8, architecture="ARM64")
]


class More:
    share = SPOT

    def set(self, values):
        """The list has parts alone: another spot price of one type is one of all, in proportion."""
        spot = {name: p["spot"] for name, p in values.get("prices", {}).items() if "spot" in p}
        for name, micros in spot.items():
            self.share *= micros / self.types[name].spot
        if spot:
            prices = {t.name: dict(values["prices"].get(t.name, {}), spot=sum_of(t.name, t.gpu, t.count, t.vcpus,
                                                                                  t.memory_gib, self.share))
                      for t in self.types.values()}
            values = dict(values, prices=prices)
        super().set(values)

    def rows(self, kind):
        """zone -> rows of that kind."""
        found = {z: [] for zones in ZONES.values() for z in zones}
        if kind == "instances":
            for m in self.world.machines.values():
                if m.phase != "gone" and m.listed():
                    found[m.zone].append(self.instance(m))
        elif kind == "operations":
            for o in self.operations.values():
                if o["zone"] and o["begun"] <= self.world.now():
                    found[o["zone"]].append(self.operation_view(o))
        elif kind == "firewalls":
            found = {"": self.firewalls()}
        elif kind == "disks":
            for t in self.world.things.values():
                if t.kind == "disk" and t.ended is None:
                    found[t.facts["zone"]].append(self.disk(t))
        else:
            for zone in found:
                found[zone] = [
                    self.type_view(t, zone) for t in self.types.values()
                    if "+" not in t.name and zone in t.facts.get("zones", [zone])
                ] if kind == "machineTypes" else [
                    dict(kind="compute#acceleratorType", name=n, description=g[0], maximumCardsPerInstance=g[3],
                         zone=self.link("zones/" + zone)) for n, g in GPUS.items()
                ]
        return found

    def type_view(self, t, zone):
        builtin = dict(
            accelerators=[dict(guestAcceleratorType=t.gpu, guestAcceleratorCount=t.count)]) if t.count else {}
        if t.name.startswith(("a3-", "a4-", "g4-", "a2-ultra")):
            builtin["bundledLocalSsds"] = dict(defaultInterface="NVME", partitionCount=t.count)
        return dict(kind="compute#machineType", name=t.name, guestCpus=t.vcpus, memoryMb=t.memory_gib * 1024, zone=zone,
                    architecture=t.facts.get("architecture", "X86_64"),
                    selfLink=self.link(f"zones/{zone}/machineTypes/{t.name}"), **builtin)

    def getMachineType(self, request):
        t = self.types.get(self.place["name"])
        if not t or "+" in t.name or self.place["zone"] not in t.facts.get("zones", [self.place["zone"]]):
            raise self.absent(request.path)
        return Reply(200, self.type_view(t, self.place["zone"]))

    def kept(self, row, text):
        """Terms of `field op value`, joined by AND or in brackets side by side."""
        for term in filter(None, (t.strip(" ()") for t in re.split(r"\s+AND\s+|\)\s*\(", text))):
            one = re.fullmatch(r'([\w.-]+)\s*(=|!=|:|eq|ne)\s*"?([^"]*)"?', term)
            if not one:
                raise self.invalid(f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.")
            value = row
            for part in [one[1]] if not one[1].startswith(("labels.", "scheduling.")) else one[1].split(".", 1):
                value = (value or {}).get(part)
            if one[2] == ":":
                good = value is not None and (one[3] == "*" or one[3] in str(value))
            else:
                good = (str(value) == one[3]) == (one[2] in ("=", "eq"))
            if not good:
                return False
        return True

    def listing(self, aggregated, request):
        kind, zone, text = self.place["kind"], self.place.groupdict().get("zone"), request.arg("filter", "")
        limit = request.arg("maxResults", "500")
        if not limit.isdigit() or int(limit) > 500:
            raise self.invalid("Invalid value for field 'maxResults'.")
        rows = [(z, r) for z, group in self.rows(kind).items() if zone in (None, z) for r in group
                if self.kept(r, text)]
        rows, more = self.page(rows, request.arg("pageToken"), int(limit), 500,
                               self.invalid("Invalid value for field 'pageToken'."))
        if aggregated:
            items = {}
            for z in self.rows(kind):
                mine = [r for at, r in rows if at == z]
                items["zones/" + z] = {kind: mine} if mine else dict(warning=dict(
                    code="NO_RESULTS_ON_PAGE", message=f"There are no results for scope 'zones/{z}' on this page."))
        else:
            items = [r for _, r in rows]
        word = kind[:-1] + ("AggregatedList" if aggregated else "List")
        return Reply(200, dict(kind="compute#" + word, items=items, **({"nextPageToken": more} if more else {})))

    def listZones(self, request):
        return Reply(
            200,
            dict(
                kind="compute#zoneList", items=[
                    dict(name=z, status="UP", region=self.link("regions/" + r)) for r, zones in ZONES.items()
                    for z in zones
                ]))

    def region(self, r):
        used = len(self.world.alive())
        names = ["CPUS"] + [
            p + n for n in ("NVIDIA_T4_GPUS", "NVIDIA_L4_GPUS", "NVIDIA_A100_GPUS")
            for p in ("", "PREEMPTIBLE_")
        ] + ["PREEMPTIBLE_NVIDIA_H100_GPUS"]  # Quota.metric has no H100 on demand
        return dict(kind="compute#region", name=r, status="UP",
                    quotas=[dict(metric=n, limit=100.0, usage=float(used)) for n in names])

    def listRegions(self, request):
        return Reply(200, dict(kind="compute#regionList", items=[self.region(r) for r in ZONES]))

    def getRegion(self, request):
        if self.place["region"] not in ZONES:
            raise self.absent(request.path)
        return Reply(200, self.region(self.place["region"]))

    def getProject(self, request):
        limit = 64.0 if self.world.quota is None else float(self.world.quota)
        return Reply(
            200,
            dict(kind="compute#project", name=self.project,
                 quotas=[dict(metric="GPUS_ALL_REGIONS", limit=limit, usage=float(len(self.world.alive())))]))

    def getImageFromFamily(self, request):
        return Reply(
            200,
            dict(kind="compute#image", name=self.place["name"] + "-v1", family=self.place["name"], status="READY",
                 selfLink=self.link("global/images/" + self.place["name"] + "-v1")))

    def described(self, text, usage, region):
        if not usage.startswith("Commit"):
            return ("Spot Preemptible " if usage == "Preemptible" else "") + text + " running in " + region
        for word, other in (("Predefined Instance Core", "Cpu"), ("Predefined Instance Ram", "Ram"),
                            ("Instance Core", "Cpu"), ("Instance Ram", "Ram"), ("N1 ", ""), ("GPU", "GPU running"),
                            ("96GB", "96GB running")):
            text = text.replace(word, other)
        return f"Commitment v1: {text} in {region} for {usage[6]} Year" + "s" * (usage[6] != "1")

    def list_skus(self, request):
        if request.arg("currencyCode", "USD") != "USD":
            raise self.invalid("Only USD is known here.")
        parts = [(f"{f} {PROCESSORS.get(f, '')}Instance {what}", f if f != "N1" else "N1Standard", price)
                 for f, (core, ram) in FAMILIES.items() for what, price in (("Core", core), ("Ram", ram))]
        parts += [(label, "GPU", price) for label, price, _, _ in GPUS.values()]
        rows = []
        for text, group, price in parts:
            for region, factor in self.REGIONS.items():
                for usage, share in (("OnDemand", 1), ("Preemptible", self.share), ("Commit1Yr", RESERVED[1]),
                                     ("Commit3Yr", RESERVED[3])):
                    nanos = int(int(price * share) * factor * 1000)
                    rows.append(
                        dict(
                            name=f"services/6F81-5844-456A/skus/{len(rows):04}", skuId=f"{len(rows):04}",
                            description=self.described(text, usage, region),
                            category=dict(serviceDisplayName="Compute Engine", resourceFamily="Compute",
                                          resourceGroup=group, usageType=usage), serviceRegions=[region], pricingInfo=[
                                              dict(
                                                  summary="", currencyConversionRate=1, pricingExpression=dict(
                                                      usageUnit="GiBy.h" if text.endswith("Ram") else "h", tieredRates=[
                                                          dict(
                                                              startUsageAmount=0,
                                                              unitPrice=dict(currencyCode="USD",
                                                                             units=str(nanos // 10**9),
                                                                             nanos=nanos % 10**9))
                                                      ]))
                                          ], serviceProviderName="Google"))
        size = int(request.arg("pageSize", "5000"))
        rows, more = self.page(rows, request.arg("pageToken"), size, 5000, self.invalid("Invalid page token"))
        return Reply(200, dict(skus=rows, nextPageToken=more))

    def metadata(self, request, machine, path):
        """URL/_metadata/NAME stands for http://metadata.google.internal. wait_for_change hangs until it is TRUE."""
        if request.header("Metadata-Flavor") != "Google":
            return Reply(403, "Missing Metadata-Flavor:Google header.", "text/plain")
        known = {
            "/computeMetadata/v1/instance/name": machine.name, "/computeMetadata/v1/instance/maintenance-event": "NONE"
        }
        if path == "/computeMetadata/v1/instance/preempted":
            if request.arg("wait_for_change") == "true" and not machine.noticed():
                return Reply(200, self.hang(machine, float(request.arg("timeout_sec", "60"))), "application/text")
            known[path] = "TRUE" if machine.noticed() else "FALSE"
        return Reply(200, known[path], "application/text") if path in known else Reply(404, "", "text/plain")

    def hang(self, machine, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not machine.noticed():
            time.sleep(0.02)
        yield b"TRUE" if machine.noticed() else b"FALSE"
