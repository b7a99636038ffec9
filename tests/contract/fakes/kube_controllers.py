"""What goes on in kubernetes.py by itself: scheduling, jobs that make and remake pods, and the record of changes that
watches read. Mixed into the fake; runs before and after each request.
"""
import json

from kube_claims import Claims
from kube_objects import NODES, gpus_of, job_view, node_view, pod_view

PLURALS = ("pods", "jobs", "nodes", "persistentvolumeclaims")


class Controllers(Claims):

    def views(self, plural):
        """(namespace, name) -> object as it is now."""
        if plural == "nodes":
            return {(None, n["name"]): node_view(n) for n in NODES}
        if plural == "jobs":
            return {k: job_view(j, self.world.now()) for k, j in self.jobs.items()}
        if plural == "persistentvolumeclaims":
            return {k: self.claim_view(c) for k, c in self.claims.items()}
        return {(m.facts["namespace"], m.facts["pod"]): pod_view(m, self.world.now())
                for m in self.world.machines.values() if m.phase != "gone" or m.facts.get("kept")}

    def sync(self):
        """Runs the controllers, and writes down each change under a version of its own: what watches read."""
        self.schedule()
        for plural in PLURALS:
            views = self.views(plural)
            known = {k[1:] for k in self.seen if k[0] == plural}
            for place, view in views.items():
                before = self.seen.get((plural, *place))
                if before is None or before[0] != json.dumps(view, sort_keys=True):
                    self.note(plural, place, "MODIFIED" if before else "ADDED", view)
            for place in known - set(views):
                self.note(plural, place, "DELETED", json.loads(self.seen.pop((plural, *place))[0]))

    def note(self, plural, place, type, view):
        self.version += 1
        if type != "DELETED":
            self.seen[(plural, *place)] = (json.dumps(view, sort_keys=True), self.version)
        self.events.append((self.version, plural, place[0], type, self.versioned(view, self.version)))

    def versioned(self, view, version):
        return dict(view, metadata=dict(view["metadata"], resourceVersion=str(version)))

    def current(self, plural, place):
        text, version = self.seen[(plural, *place)]
        return self.versioned(json.loads(text), version)

    def free(self, node):
        used = sum(
            gpus_of(m.facts["spec"]) for m in self.world.machines.values()
            if m.facts.get("node") == node["name"] and m.phase in ("starting", "running", "ending"))
        return node["gpus"] - used

    def schedule(self):
        """Pods without a node get one if there is room; jobs whose pod has failed get another, or fail."""
        for m in list(self.world.machines.values()):
            if m.phase == "starting" and not m.facts["node"] and not m.facts["stuck"]:
                self.place_pod(m)
        for job in self.jobs.values():
            m = job["pod"]
            job["done"] = job["done"] or (m.since if m and m.phase == "finished" and not m.facts["exit"] else None)
            over = m and (m.phase in ("gone", "failed") or (m.phase == "finished" and m.facts["exit"]))
            if over and not job["failed"] and not job["done"]:
                if m.reason == "expired":
                    job["failed"] = (self.world.now(), "DeadlineExceeded",
                                     "Job was active longer than specified deadline")
                elif job["failures"] >= job["object"]["spec"].get("backoffLimit", 6):
                    job["failed"] = (self.world.now(), "BackoffLimitExceeded",
                                     "Job has reached the specified backoff limit")
                else:
                    job["failures"] += 1
                    job["pod"] = self.pod_of(job)
        self.bury_finished()
        self.bury_claims()

    def bury_finished(self):
        for place, job in list(self.jobs.items()):
            ended, after = job["done"] or (job["failed"] and
                                           job["failed"][0]), job["object"]["spec"].get("ttlSecondsAfterFinished")
            if ended and after is not None and self.world.now() >= ended + after:
                self.drop_job(place, "Background")

    def place_pod(self, m):
        spec, want = m.facts["spec"], gpus_of(m.facts["spec"])
        m.facts["why"], there = self.hindered(m)
        for node in [] if m.facts["why"] else NODES:
            chosen = all(node["labels"].get(k) == v for k, v in (spec.get("nodeSelector") or {}).items())
            tolerated = not node["gpus"] or any(
                t.get("key") in ("nvidia.com/gpu", None) for t in spec.get("tolerations", []))
            zone = node["labels"]["topology.kubernetes.io/zone"]
            if chosen and tolerated and there in (None, zone) and self.free(node) >= want and (
                    want or not node["gpus"]):
                m.facts["node"], m.zone = node["name"], zone
                self.bind(m, m.zone)
                m.go("running", self.world.now() + self.world.start)
                return
