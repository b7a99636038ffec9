"""Network volumes of runpod.py: a folder of one data center, which pods there mount from their creation on, several at
a time. https://docs.runpod.io/storage/network-volumes and the API document of REST v2. What the document does not say,
that a volume with pods is not deleted, is what GraphQL answers: https://github.com/dstackai/dstack/pull/3781.
"""
from rules import Rules

TYPES = {"EU-RO-1": ["STANDARD", "HIGH_PERFORMANCE"], "US-KS-2": ["STANDARD"], "CA-MTL-1": []}  # by data center
CREATE, UPDATE = Rules("!name !size !dataCenter type"), Rules("name size")
IN_USE = "You must remove this network volume from all pods before deleting it."


class NetworkVolumes:

    def network_volume(self, t):
        return dict(id=t.id, name=t.tags.get("rille-name", ""), size=t.facts["size"],
                    dataCenter=t.facts["center"], type=t.facts["type"])

    def there(self, id):
        t = self.world.things.get(id)
        if not t or "center" not in t.facts or t.ended is not None or self.world.now() < t.created + self.world.lag:
            raise self.problem(404, "network volume not found")
        return t

    def fits_contract(self, p, rules):
        errors = [f"$: additional properties '{rules.unknown(p)}' not allowed"] if rules.unknown(p) else []
        if rules.missing(p):
            errors.append(f"$: missing property '{rules.missing(p)}'")
        if not isinstance(p.get("name", "x"), str) or not p.get("name", "x"):
            errors.append("$.name: length must be >= 1")
        if "size" in p and (not isinstance(p["size"], int) or not 10 <= p["size"] <= 4096):
            errors.append("$.size: an integer of 10 to 4096")
        if p.get("type", "STANDARD") not in ("STANDARD", "HIGH_PERFORMANCE"):
            errors.append("$.type: not one of STANDARD, HIGH_PERFORMANCE")
        if errors or not p:
            raise self.problem(422, "request does not match the contract", errors)

    def createNetworkVolume(self, p, request):
        p = request.json() or {}
        self.fits_contract(p, CREATE)
        types = TYPES.get(p["dataCenter"], [])
        if p.get("type", "STANDARD") not in types:
            raise self.problem(400, f"{p['dataCenter']} has no network volumes of type {p.get('type', 'STANDARD')}")
        made = self.world.attach("disk", self.world.word(10, "abcdefghijklmnopqrstuvwxyz0123456789"),
                                 {"rille-name": p["name"]}, None, False, size=p["size"], center=p["dataCenter"],
                                 type=p.get("type", "STANDARD"))
        return 201, self.network_volume(made)

    def listNetworkVolumes(self, p, request):
        rows = [t for t in self.world.things.values() if "center" in t.facts and t.ended is None and
                self.world.now() >= t.created + self.world.list_lag]
        rows = [r for row in rows for r in ([row, row] if self.duplicate else [row])]
        return 200, dict(networkVolumes=[self.network_volume(t) for t in rows])

    def getNetworkVolume(self, p, request):
        return 200, self.network_volume(self.there(self.id))

    def updateNetworkVolume(self, p, request):
        t, p = self.there(self.id), request.json() or {}
        self.fits_contract(p, UPDATE)
        if p.get("size", t.facts["size"]) < t.facts["size"]:
            raise self.problem(400, "network volume size cannot be reduced")
        t.facts["size"] = p.get("size", t.facts["size"])
        t.tags["rille-name"] = p.get("name", t.tags["rille-name"])
        return 200, self.network_volume(t)

    def deleteNetworkVolume(self, p, request):
        t = self.there(self.id)
        if any(t.id in self.mounted(m.facts["body"]) for m in self.world.alive()):
            raise self.problem(400, IN_USE)
        t.ended = self.world.now()
        return 204, None

    def mounted(self, body):
        """The ids of the network volumes of such a pod."""
        return [mount["volumeId"] for mount in (body.get("mounts") or {}).get("network") or []]

    def check_mounts(self, mounts, cloud, center):
        """What breaks a rule beyond the schema: 400."""
        network = mounts.get("network") or []
        if network and mounts.get("persistent"):
            raise self.problem(400, "at most one of persistent or network may be set")
        if network and cloud != "SECURE":
            raise self.problem(400, "network volumes are available in the secure cloud only")
        for mount in network:
            t = self.world.things.get(mount["volumeId"])
            if not t or "center" not in t.facts or t.ended is not None:
                raise self.problem(400, f"network volume {mount['volumeId']} not found")
            if t.facts["center"] != center:
                raise self.problem(400, f"network volume {t.id} is in {t.facts['center']}, not in {center}")
