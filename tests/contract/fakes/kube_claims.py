"""Claims of kubernetes.py, and what pods make of them: a class that waits binds a claim where its first pod is
scheduled, another at once; a pod follows its claims' zone; a claim that pods have goes with the last of them.
https://kubernetes.io/docs/concepts/storage/persistent-volumes/ . No volumes and classes as objects, no capacity.
"""
import re

from world import stamp

# access modes; whether it waits for the first pod (WaitForFirstConsumer)
CLASSES = {
    "standard": (("ReadWriteOnce", "ReadWriteOncePod"), True), "nfs": (("ReadWriteOnce", "ReadWriteMany"), False)
}
DEFAULT = "standard"
MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def bytes_of(quantity):
    found = re.fullmatch(r"(\d+)([kMGT]i?|Ki)?", str(quantity))
    return int(found[1]) * UNITS[found[2] or ""] if found else 0


def check_claim(p, status):
    spec = p.get("spec") or {}
    modes = spec.get("accessModes") or []
    if not modes or any(m not in MODES for m in modes):
        raise status(422, f'spec.accessModes: Unsupported value: {modes}: supported values: {", ".join(MODES)}')
    if not bytes_of(((spec.get("resources") or {}).get("requests") or {}).get("storage", "")):
        raise status(422, "spec.resources[storage]: Required value")


def claims_in(spec):
    return [
        v["persistentVolumeClaim"]["claimName"] for v in spec.get("volumes") or [] if v.get("persistentVolumeClaim")
    ]


class Claims:

    def new_claim(self, place, p):
        kind = p["spec"].setdefault("storageClassName", DEFAULT)
        provided = kind in CLASSES and set(p["spec"]["accessModes"]) <= set(CLASSES[kind][0])
        size = bytes_of(p["spec"]["resources"]["requests"]["storage"])
        self.claims[place] = dict(
            object=p, provided=provided, zone=None, deleting=None, bound=provided and not CLASSES[kind][1],
            thing=self.world.attach("disk", place[1], dict(p["metadata"].get("labels") or {}), None, False,
                                    size=f"{size / 1e9:g}"))

    def claim_view(self, c):
        meta, spec = c["object"]["metadata"], c["object"]["spec"]
        if c["deleting"]:
            meta = dict(meta, deletionTimestamp=stamp(c["deleting"]), deletionGracePeriodSeconds=0)
        status = dict(phase="Pending")
        if c["bound"]:
            status = dict(phase="Bound", accessModes=spec["accessModes"], capacity=spec["resources"]["requests"])
        return dict(c["object"], metadata=dict(meta, finalizers=["kubernetes.io/pvc-protection"]), status=status)

    def users(self, place):
        """The pods that have a claim."""
        return [
            m for m in self.world.machines.values()
            if m.facts["namespace"] == place[0] and place[1] in claims_in(m.facts["spec"]) and m.facts["node"] and
            m.phase in ("starting", "running", "ending", "failed")
        ]

    def hindered(self, m):
        """(why the pod's claims keep it from any node or "", the zone that they keep it in or None)"""
        zones = set()
        for name in claims_in(m.facts["spec"]):
            c = self.claims.get((m.facts["namespace"], name))
            if not c or c["deleting"]:
                return f'persistentvolumeclaim "{name}" {"is being deleted" if c else "not found"}', None
            if not c["bound"] and not (c["provided"] and CLASSES[c["object"]["spec"]["storageClassName"]][1]):
                return "pod has unbound immediate PersistentVolumeClaims. not found", None
            zones |= {c["zone"]} - {None}
        if len(zones) > 1:
            return "0/6 nodes are available: 6 node(s) had volume node affinity conflict.", None
        return "", zones.pop() if zones else None

    def bind(self, m, zone):
        for name in claims_in(m.facts["spec"]):
            c = self.claims[(m.facts["namespace"], name)]
            if not c["bound"]:
                c["bound"], c["zone"] = True, zone
            if c["thing"].machine is None:
                c["thing"].machine = m.id

    def bury_claims(self):
        for place, c in list(self.claims.items()):
            if c["deleting"] and not self.users(place):
                self.claims.pop(place)["thing"].ended = self.world.now()
