"""A client of kubernetes.py. A machine is a job; its name is made from the token."""
import http.client, json

from clients import ApiError, Client

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


class Kubernetes(Client):
    name, type, other, mismatch, spot, lagging = "kubernetes", "Tesla-T4", "NVIDIA-A10", "", False, ""
    CODES = dict(capacity="Unschedulable", quota="Forbidden", throttle="TooManyRequests", error="InternalError",
                 auth="Unauthorized", signature="Unauthorized", unknown="BadRequest", missing="Invalid")
    create_operation, list_operation = "createJob", "listJobs"
    required, unknown = "containers", {"retartPolicy": "Never"}
    made = 0

    def __init__(self, fake, **credentials):
        super().__init__(fake, **credentials)
        with open(fake.settings["kubeconfig"]) as f:
            self.credentials["token"] = json.load(f)["users"][0]["user"]["token"]

    def call(self, method, path, body=None, type="application/json"):
        headers = {"Authorization": "Bearer " + self.credentials["token"], "Content-Type": type}
        status, got, text = self.fake.send(method, path, headers, b"" if body is None else json.dumps(body).encode())
        value = json.loads(text)
        if status >= 300:
            raise ApiError(status, value["reason"], got, value["message"])
        return value

    def job(self, name, tag, type, drop=None, job=None, **more):
        spec = dict(
            dict(restartPolicy="Never", nodeSelector={"nvidia.com/gpu.product": type or self.type},
                 tolerations=[dict(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")], containers=[
                     dict(name="main", image=self.fake.settings["image"], command=["sleep", "1"],
                          resources=dict(limits={"nvidia.com/gpu": 1}))
                 ]), **more)
        spec.pop(drop, None)
        labels = {"rille-lease": tag} if tag else {}
        return dict(apiVersion="batch/v1", kind="Job", metadata=dict(name=name, labels=labels),
                    spec=dict(backoffLimit=0, template=dict(metadata=dict(labels=labels), spec=spec), **(job or {})))

    def create(self, token="", tag="", type=None, spot=False, cap=None, **more):
        Kubernetes.made += 1
        name = token or f"job-{Kubernetes.made}"
        try:
            self.call("POST", JOBS, self.job(name, tag, type, **more))
        except ApiError as e:
            if e.code != "AlreadyExists":
                raise
        return name

    def order(self, **request):
        name = self.create(**request)
        pods = self.call("GET", PODS + "?labelSelector=job-name%3D" + name)["items"]
        for c in pods[0]["status"]["conditions"]:
            if c["type"] == "PodScheduled" and c["status"] == "False":
                self.terminate(name)
                self.fake.control("advance", seconds=5)
                raise ApiError(200, c["reason"], {}, c["message"])
        return name

    def describe(self, name):
        pods = self.call("GET", PODS + "?labelSelector=job-name%3D" + name)["items"]
        if not pods:
            return "gone"
        if "deletionTimestamp" in pods[-1]["metadata"] and pods[-1]["status"]["conditions"][-1][
                "type"] != "DisruptionTarget":
            return "ending"
        return {"Pending": "starting", "Running": "running"}.get(pods[-1]["status"]["phase"],
                                                                 pods[-1]["status"]["phase"])

    def list(self, tag):
        names, more = [], ""
        while True:
            got = self.call(
                "GET", JOBS + f"?labelSelector=rille-lease%3D{tag}&limit=100" + (f"&continue={more}" if more else ""))
            names += [i["metadata"]["name"] for i in got["items"]]
            more = got["metadata"].get("continue", "")
            if not more:
                return names

    def terminate(self, name):
        self.call("DELETE", f"{JOBS}/{name}?propagationPolicy=Background")

    def watch(self, path, count):
        """The first events of a watch, on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.fake.port, timeout=20)
        connection.request("GET", path, headers={"Authorization": "Bearer " + self.credentials["token"]})
        reply = connection.getresponse()
        events = [json.loads(reply.readline()) for _ in range(count)]
        connection.close()
        return events

    def special(self, t):
        start = self.call("GET", PODS)["metadata"]["resourceVersion"]
        id = self.create(tag="a")
        t.turn(5)
        self.call("GET", "/version")
        events = self.watch(f"{PODS}?watch=1&resourceVersion={start}&labelSelector=rille-lease%3Da", 2)
        t.equal([e["type"] for e in events], ["ADDED", "MODIFIED"])
        t.equal(events[1]["object"]["status"]["phase"], "Running")
        bookmark = self.watch(f"{PODS}?watch=1&allowWatchBookmarks=true", 1)[0]
        t.equal(bookmark["type"], "BOOKMARK")
        t.fake.control("compact")
        t.code("Expired", lambda: self.call("GET", f"{PODS}?watch=1&resourceVersion={start}"))
        nodes = self.call("GET", "/api/v1/nodes")["items"]
        t.equal(sum(int(n["status"]["allocatable"].get("nvidia.com/gpu", 0)) for n in nodes), 34)
        mine = self.call("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dt4-0")["items"]
        t.equal([p["metadata"]["labels"]["job-name"] for p in mine], [id])
        t.code("AlreadyExists", lambda: self.call("POST", JOBS, self.job(id, "a", None)))
        t.code("Forbidden", lambda: self.call("GET", "/api/v1/namespaces/kube-system/pods"))
        t.code("NotFound", lambda: self.call("GET", JOBS + "/nothing"))
        t.code("Invalid", lambda: self.call("POST", JOBS, self.job("Upper", "a", None)))
        t.code("Invalid", lambda: self.call("POST", JOBS, self.job("x", "not a label!", None)))
        t.code("Conflict", lambda: self.call("DELETE", JOBS + "/" + id, dict(preconditions=dict(uid="other"))))
        # Without a policy the pods are orphaned, and go on.
        self.call("DELETE", JOBS + "/" + id)
        t.equal(t.fake.state()["alive"], 1)
        self.call("DELETE", PODS + "?labelSelector=rille-lease%3Da")
        t.turn(5)
        t.equal(t.fake.state()["alive"], 0)
        # Evicted: a condition first, then the pod goes, and the job with it or with another pod.
        id = self.create(tag="b", job=dict(activeDeadlineSeconds=3600))
        t.turn(5)
        t.fake.control("reclaim", id=id, in_seconds=20)
        pod = self.call("GET", PODS + "?labelSelector=rille-lease%3Db")["items"][0]
        t.equal(pod["status"]["conditions"][-1]["reason"], "PreemptionByScheduler")
        t.turn(30)
        t.equal(self.call("GET", JOBS + "/" + id)["status"]["conditions"][0]["reason"], "BackoffLimitExceeded")
        self.terminate(id)
        id = self.create(tag="c", job=dict(activeDeadlineSeconds=60, ttlSecondsAfterFinished=100))
        t.turn(70)
        t.equal(self.call("GET", JOBS + "/" + id)["status"]["conditions"][0]["reason"], "DeadlineExceeded")
        t.turn(100)
        t.code("NotFound", lambda: self.call("GET", JOBS + "/" + id))
        id = self.create(tag="d")
        t.turn(5)
        t.fake.control("finish", id=id, exit_code=0)
        t.equal(self.call("GET", JOBS + "/" + id)["status"]["succeeded"], 1)
        self.volumes(t)
        # Nine do not fit on eight GPUs and two; the one that waits comes up once there is room.
        ids = [self.create(tag="e") for _ in range(11)]
        t.turn(5)
        t.equal(sorted(self.describe(i) for i in ids), ["running"] * 10 + ["starting"])
        self.terminate(next(i for i in ids if self.describe(i) == "running"))
        t.turn(5)
        t.turn(5)
        t.equal([self.describe(i) for i in ids].count("running"), 10)
        t.fault("late_error")
        id = self.create(tag="f", type=self.other)
        pod = self.call("GET", PODS + "?labelSelector=rille-lease%3Df")["items"][0]
        t.equal(pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "ImagePullBackOff")

    def volumes(self, t):
        at = "/api/v1/namespaces/default/persistentvolumeclaims"

        def claim(name, mode="ReadWriteOnce", size="10Gi", **spec):
            return dict(apiVersion="v1", kind="PersistentVolumeClaim", metadata=dict(name=name, labels={"of": "x"}),
                        spec=dict(accessModes=[mode], resources=dict(requests=dict(storage=size)), **spec))

        def phase(name):
            return self.call("GET", f"{at}/{name}")["status"]["phase"]

        def waits(name):
            pod = self.call("GET", PODS + "?labelSelector=job-name%3D" + name)["items"][0]
            return pod["status"]["conditions"][0].get("message", "")

        def box(name, **more):
            mount = dict(name="v", persistentVolumeClaim=dict(claimName=name))
            return self.create(tag="v", volumes=[mount], **more)

        for wrong in (claim("x", mode="ReadWriteSome"), claim("x", size="a lot"), claim("Upper")):
            t.code("Invalid", lambda: self.call("POST", at, wrong))
        self.call("POST", at, claim("one"))
        t.code("AlreadyExists", lambda: self.call("POST", at, claim("one")))
        self.call("POST", at, claim("many", mode="ReadWriteMany", storageClassName="nfs"))
        self.call("POST", at, claim("no", mode="ReadWriteMany"))  # the default class has no such mode
        t.equal((phase("one"), phase("many"), phase("no")), ("Pending", "Bound", "Pending"))
        t.equal(sorted(c["metadata"]["name"] for c in self.call("GET", at + "?labelSelector=of%3Dx")["items"]),
                ["many", "no", "one"])
        first = box("one", nodeSelector={"topology.kubernetes.io/zone": "zone-b", "nvidia.com/gpu.product": "Tesla-T4"})
        t.turn(5)
        t.equal((self.describe(first), phase("one")), ("running", "Bound"))
        other = box("one", nodeSelector={"topology.kubernetes.io/zone": "zone-a", "nvidia.com/gpu.product": "Tesla-T4"})
        t.equal((self.describe(other), "affinity" in waits(other)), ("starting", True))
        t.equal("not found" in waits(box("none")), True)
        t.equal("unbound" in waits(box("no")), True)
        both = [box("many") for _ in range(2)]
        t.turn(5)
        t.equal([self.describe(b) for b in both], ["running"] * 2)
        self.call("DELETE", at + "/one")  # it waits for its pod
        t.equal("deletionTimestamp" in self.call("GET", at + "/one")["metadata"], True)
        self.call("DELETE", JOBS + "?labelSelector=rille-lease%3Dv&propagationPolicy=Background")
        t.turn(5)
        t.code("NotFound", lambda: self.call("GET", at + "/one"))
        for name in ("many", "no"):
            self.call("DELETE", f"{at}/{name}")
        t.code("NotFound", lambda: self.call("GET", at + "/many"))
