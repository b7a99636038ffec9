#!/usr/bin/env python3
"""A Kubernetes API server as far as a client that rents GPUs needs it: nodes, pods, jobs, claims; get, list with pages
and selectors, watch with bookmarks and 410, create, merge patch, delete with its propagation. A bearer token in a
kubeconfig, or a client certificate. Jobs make pods, pods are scheduled on nodes with free GPUs or stay Pending.
kube_objects.py says what objects look like, kube_controllers.py what happens by itself, kube_claims.py what
claims do. Stricter than the default: unknown fields are refused. No price, no discovery for kubectl, no exec.
"""
import base64, json, os, re, shutil, tempfile, time

from base import Fake, Refusal, Reply, main
from kube_claims import check_claim
from kube_controllers import Controllers
from kube_objects import CLAIM, JOB, POD, PRODUCTS, check_labels, check_pod, check_types, gpus_of, kept
from rules import flatten
from world import Machine, Type, stamp

KINDS = {
    "pods": ("Pod", "v1"), "jobs": ("Job", "batch/v1"), "nodes": ("Node", "v1"),
    "persistentvolumeclaims": ("PersistentVolumeClaim", "v1")
}
REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
    415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError"
}
PATH = re.compile(
    r"/(api/v1|apis/batch/v1)(?:/namespaces/([^/]+))?/(pods|jobs|nodes|persistentvolumeclaims)(?:/([^/]+))?"
    r"(/log|/status)?")


def status(code, message, reason=None, headers=None):
    return Refusal(code, reason or REASONS[code], message, headers)


class Kubernetes(Controllers, Fake):
    name, notice, end, currency = "kubernetes", 30.0, 1.0, ""
    billing = dict(unit_s=1, minimum_s=0, from_live=True, until="gone")
    ENDS = "deleteJob"
    CREATES, LATE = ("createJob", "createPod"), ("capacity", )
    TYPES = [Type(product, product, 8, gib, 32, 256, 0, None)
             for product, gib in PRODUCTS.items()] + [Type("cpu", "", 0, 0, 32, 256, 0, None)]
    REFUSALS = {
        "malformed": status(400,
                            "malformed"), "capacity": status(500, "never sent: the pod stays Pending"), "quota": status(
                                403,
                                "pods \"x\" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, "
                                "used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"),
        "throttle": status(429, "Too many requests, please try again later.", headers={"Retry-After": "1"}),
        "error": status(500,
                        "Internal error occurred: etcdserver: request timed out"), "auth": status(401, "Unauthorized")
    }

    def prepare(self):
        self.key, self.folder = "k8s." + self.world.word(64), tempfile.mkdtemp(prefix="rille-fake-kube-")
        self.jobs, self.claims, self.version, self.events, self.seen, self.oldest = {}, {}, 1000, [], {}, 1000

    def settings(self):
        return dict(endpoints=dict(kubernetes=self.url), regions=["zone-a", "zone-b"], namespace="default",
                    image="rille/agent:1", wait="0s", kubeconfig=self.kubeconfig(),
                    storage_classes=dict(nfs="ReadWriteMany"))

    def kubeconfig(self):
        path = os.path.join(self.folder, "config")
        trust, user = {"certificate-authority": self.ca} if self.ca else {}, {"token": self.key}
        if self.certified:  # one in a file beside it, one in it
            shutil.copy(self.certified, self.folder)
            with open(self.certified + ".key", "rb") as f:
                user = {"client-certificate": "client.pem", "client-key-data": base64.b64encode(f.read()).decode()}
        with open(path, "w") as f:
            json.dump(
                {
                    "apiVersion": "v1", "kind": "Config", "current-context": "fake", "contexts": [{
                        "name": "fake", "context": {"cluster": "fake", "user": "fake", "namespace": "default"}
                    }], "clusters": [{"name": "fake", "cluster": dict({"server": self.url}, **trust)}],
                    "users": [{"name": "fake", "user": user}]
                }, f)
        os.chmod(path, 0o600)
        return path

    def env(self):
        return dict(KUBECONFIG=os.path.join(self.folder, "config"))

    def secrets(self):
        return [self.key]

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    # The wire.

    def needs(self, operation, parameters):
        """The channel of what is created is kubectl's, which gets the pod and opens an exec there."""
        if not self.place:
            return []
        group = "batch/" if self.plural == "jobs" else ""
        verb = operation[:next(i for i, c in enumerate(operation) if c.isupper())]
        channel = ["pods:get", "pods/exec:create"] if operation == "createJob" else []
        return [f"{group}{self.plural}:{verb}"] + channel

    def parse(self, request):
        self.place = PATH.fullmatch(request.path)
        body = request.json() if request.body else {}
        if not self.place:
            if request.path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
                return "selfSubjectReview", body
            return {"/version": "version", "/api": "discovery", "/apis": "discovery"
                    }.get(request.path,
                          "selfSubjectAccessReview" if "selfsubjectaccessreviews" in request.path else "unknown"), body
        group, self.namespace, self.plural, self.object, self.sub = self.place.groups()
        kind = KINDS[self.plural][0].replace("PersistentVolume", "")
        verb = {"POST": "create", "DELETE": "delete", "PATCH": "patch", "PUT": "update"
                }.get(request.method,
                      "get" if self.object else "watch" if request.arg("watch") in ("1", "true") else "list")
        many = kind + "s" if not self.object and verb != "create" else kind
        return verb + many, dict(body or {}, **{"query": dict(request.query)} if request.query else {})

    def token_of(self, parameters, request):
        return ((parameters or {}).get("metadata") or {}).get("name", "") if request.method == "POST" else ""

    def verify(self, request):
        if not self.certified and request.header("Authorization") != "Bearer " + self.key:
            raise status(401, "Unauthorized")

    def render(self, r, request):
        details = {"retryAfterSeconds": int(r.headers["Retry-After"])} if "Retry-After" in r.headers else {}
        return Reply(
            r.status,
            dict(kind="Status", apiVersion="v1", metadata={}, status="Failure", message=r.message, reason=r.code,
                 details=dict(details, **r.more), code=r.status), headers=r.headers)

    def run(self, operation, p, request):
        if not self.place:
            if operation == "version":
                return Reply(200, dict(major="1", minor="31", gitVersion="v1.31.2"))
            if operation == "selfSubjectReview":
                if p.get("kind") != "SelfSubjectReview" or p.get("apiVersion") != "authentication.k8s.io/v1":
                    raise status(400, f"the object provided is no SelfSubjectReview: {p}")
                user = dict(username="system:serviceaccount:default:rille", groups=["system:authenticated"])
                return Reply(201, dict(p, status=dict(userInfo=user)))
            if operation == "selfSubjectAccessReview":
                return Reply(201, dict(p, status=dict(allowed=True)))
            if operation == "discovery":
                return Reply(
                    200,
                    dict(kind="APIVersions", versions=["v1"]) if request.path == "/api" else dict(
                        kind="APIGroupList", apiVersion="v1",
                        groups=[dict(name="batch", versions=[dict(groupVersion="batch/v1", version="v1")])]))
            raise status(404, "the server could not find the requested resource")
        if self.namespace not in (None, "default", "work"):
            raise status(
                403, f'{self.plural} is forbidden: User "rille" cannot {operation} resource "{self.plural}" in the '
                f'namespace "{self.namespace}"')
        if request.header("Content-Type").split(";")[0] not in ("application/json", "application/merge-patch+json", ""):
            raise status(415, "the body of the request was in an unknown format")
        if request.body and request.json() is None:
            raise status(400, "the object provided is unrecognized: it is no JSON object")
        self.sync()
        reply = getattr(self, {"POST": "create", "DELETE": "delete", "PATCH": "patch"}.get(request.method,
                                                                                           "read"))(request)
        self.sync()
        return reply

    # Create.

    def meta(self, p, rules):
        kind, version = KINDS[self.plural]
        if p.get("kind") != kind or p.get("apiVersion") != version:
            raise status(
                400, f"the API version in the data ({p.get('apiVersion')}, {p.get('kind')}) does not match the "
                f"expected API version ({version}, {kind})")
        check_types(p, status)
        unknown = rules.unknown({k: v for k, v in flatten(p).items()})
        if unknown:
            raise status(400, f'strict decoding error: unknown field "{unknown}"')
        name = (p.get("metadata") or {}).get("name", "")
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) or len(name) > 63:
            raise status(
                422, f'{kind}.{version} "{name}" is invalid: metadata.name: Invalid value: "{name}": a lowercase RFC '
                "1123 label must consist of lower case alphanumeric characters or '-'")
        check_labels(p["metadata"], status)
        return name

    def create(self, request):
        p, namespace = request.json(), self.namespace or "default"
        name = self.meta(p, {"jobs": JOB, "pods": POD, "persistentvolumeclaims": CLAIM}[self.plural])
        place, taken = (namespace, name), self.views(self.plural)
        if place in taken:
            raise Refusal(409, "AlreadyExists", f'{self.plural} "{name}" already exists', name=name, kind=self.plural)
        p = dict(
            p, metadata=dict(p["metadata"], namespace=namespace, uid=self.world.uuid(),
                             creationTimestamp=stamp(self.world.now())))
        if self.plural == "persistentvolumeclaims":
            check_claim(p, status)
            self.new_claim(place, p)
            self.sync()
            return Reply(201, self.current(self.plural, place))
        spec = p["spec"] if self.plural == "pods" else p["spec"]["template"]["spec"]
        check_pod(p, spec, self.plural == "jobs", status)
        if self.world.quota is not None and len([m for m in self.world.alive() if m.phase != "failed"
                                                 ]) >= self.world.quota:
            raise self.refusal("quota", {})
        stuck = self.take(("capacity", ), "createJob" if self.plural == "jobs" else "createPod", request)
        if self.plural == "jobs":
            job = dict(object=p, pod=None, failures=0, failed=None, done=None,
                       thing=self.world.attach("job", name, p["metadata"].get("labels", {}), None, False))
            self.jobs[place] = job
            if not p["spec"].get("suspend"):
                job["pod"] = self.pod_of(job, stuck)
        else:
            self.new_pod(name, name, namespace, p["metadata"], spec, None, stuck)
        self.sync()
        return Reply(201, self.current(self.plural, place))

    def pod_of(self, job, stuck=None):
        p, number = job["object"], job["failures"]
        name, template = p["metadata"]["name"], p["spec"]["template"]
        labels = dict(
            (template.get("metadata") or {}).get("labels", {}),
            **{"job-name": name, "batch.kubernetes.io/job-name": name, "controller-uid": p["metadata"]["uid"]})
        meta = dict(
            labels=labels, annotations=(template.get("metadata") or {}).get("annotations", {}), uid=self.world.uuid(),
            ownerReferences=[
                dict(apiVersion="batch/v1", kind="Job", name=name, uid=p["metadata"]["uid"], controller=True)
            ])
        m = self.new_pod(f"{name}#{number}" if number else name, f"{name}-{self.world.word(5)}",
                         p["metadata"]["namespace"], meta, template["spec"], p["spec"].get("activeDeadlineSeconds"),
                         stuck)
        m.tags.update(p["metadata"].get("labels", {}))
        return m

    def new_pod(self, id, pod, namespace, meta, spec, deadline, stuck):
        product = (spec.get("nodeSelector") or {}).get("nvidia.com/gpu.product", "cpu" if not gpus_of(spec) else "any")
        left = self.world.left(product, "")
        self.world.taken(product, "", 1 if left else 0)
        m = Machine(self.world, id, product, "zone-a", "", False, 0, pod, meta.get("labels", {}), None, pod=pod,
                    node=None, namespace=namespace, meta=meta, spec=spec, stuck=bool(stuck) or left == 0, exit=None)
        m.plan = []  # it runs once it has a node
        deadline = spec.get("activeDeadlineSeconds", deadline)
        if deadline is not None:
            m.expire(m.created + deadline)
        return self.made(m)

    # Read.

    def read(self, request):
        if self.object:
            place = (self.namespace if self.plural != "nodes" else None, self.object)
            if (self.plural, *place) not in self.seen:
                raise Refusal(404, "NotFound", f'{self.plural} "{self.object}" not found', name=self.object,
                              kind=self.plural)
            if self.sub == "/log":
                return Reply(200, "a fake says nothing\n", "text/plain")
            return Reply(200, self.current(self.plural, place))
        if request.arg("watch") in ("1", "true"):
            return self.watch(request)
        rows = [
            self.current(*self.split(k)) for k in self.seen if k[0] == self.plural and self.namespace in (None, k[1])
        ]
        rows = [r for r in rows if kept(r, request, status)]
        limit = request.arg("limit", "0")
        rows, more = self.page(rows, request.arg("continue"), int(limit), 500,
                               status(410, "The provided continue parameter is "
                                      "too old"))
        kind, version = KINDS[self.plural]
        meta = dict(resourceVersion=str(self.version), **({"continue": more} if more else {}))
        return Reply(200, dict(kind=kind + "List", apiVersion=version, metadata=meta, items=rows))

    def split(self, key):
        return key[0], key[1:]

    def watch(self, request):
        since = int(request.arg("resourceVersion") or self.version)
        if since < self.oldest:
            raise status(410, f"too old resource version: {since} ({self.oldest})")
        return Reply(200, self.stream(request, self.plural, self.namespace, since))

    def stream(self, request, plural, namespace, since):
        """Runs without the lock, on the connection's thread; ends after timeoutSeconds, or when the client goes."""
        until = time.monotonic() + float(request.arg("timeoutSeconds", "300"))
        bookmarks, told = request.arg("allowWatchBookmarks") in ("1", "true"), time.monotonic()
        while time.monotonic() < until:
            with self.lock:
                self.world.tick()
                self.sync()
                events = [e for e in self.events if e[0] > since]
                gone = since < self.oldest
            if gone:
                error = dict(kind="Status", apiVersion="v1", metadata={}, status="Failure", reason="Expired", code=410,
                             message=f"too old resource version: {since} ({self.oldest})")
                yield json.dumps(dict(type="ERROR", object=error)).encode() + b"\n"
                return
            for version, of, place, type, view in events:
                since = version
                if of == plural and namespace in (None, place) and kept(view, request, status):
                    yield json.dumps(dict(type=type, object=view)).encode() + b"\n"
            if bookmarks and time.monotonic() - told > 1:
                told, kind = time.monotonic(), KINDS[plural]
                yield json.dumps(
                    dict(type="BOOKMARK", object=dict(kind=kind[0], apiVersion=kind[1],
                                                      metadata=dict(resourceVersion=str(since))))).encode() + b"\n"
            time.sleep(0.05)

    # Change and delete.

    def patch(self, request):
        if request.header("Content-Type").split(";")[0] != "application/merge-patch+json" or self.plural != "jobs":
            raise status(415, "only merge patches of jobs are known here")
        job, p = self.jobs.get((self.namespace, self.object)), request.json()
        if not job:
            raise status(404, f'jobs "{self.object}" not found')
        if set(flatten(p)) - {"spec.suspend"} and "metadata" not in p:
            raise status(422, "only metadata and spec.suspend can be changed")
        for part in ("labels", "annotations"):
            job["object"]["metadata"].setdefault(part, {}).update((p.get("metadata") or {}).get(part) or {})
        check_labels(job["object"]["metadata"], status)
        suspend = (p.get("spec") or {}).get("suspend")
        if suspend is not None:
            job["object"]["spec"]["suspend"] = suspend
            if suspend and job["pod"]:
                job["pod"].terminate()
                job["pod"] = None
            elif not suspend and not job["pod"]:
                job["pod"] = self.pod_of(job)
        self.sync()
        return Reply(200, self.current("jobs", (self.namespace, self.object)))

    def delete(self, request):
        options = request.json() or {}
        policy = request.arg("propagationPolicy") or options.get("propagationPolicy") or "Orphan"
        if policy not in ("Background", "Foreground", "Orphan"):
            raise status(422, f'propagationPolicy: Unsupported value: "{policy}"')
        if self.object:
            places = [(self.namespace, self.object)]
            if (self.plural, *places[0]) not in self.seen:
                raise Refusal(404, "NotFound", f'{self.plural} "{self.object}" not found', name=self.object,
                              kind=self.plural)
        else:
            places = [
                k[1:] for k in self.seen
                if k[0] == self.plural and k[1] == self.namespace and kept(self.current(
                    *self.split(k)), request, status)
            ]
        wanted = (options.get("preconditions") or {}).get("uid")
        for place in places:
            view = self.current(self.plural, place)
            if wanted and view["metadata"].get("uid") != wanted:
                raise status(
                    409, f"Precondition failed: UID in precondition: {wanted}, UID in object meta: "
                    f"{view['metadata'].get('uid')}")
            if self.plural == "jobs":
                self.drop_job(place, policy)
            elif self.plural == "pods":
                for m in self.world.machines.values():
                    if (m.facts["namespace"], m.facts["pod"]) == place:
                        m.facts["kept"] = False
                        m.terminate() if m.phase != "finished" else m.enter("gone", self.world.now(), "user")
            else:
                self.claims[place]["deleting"] = self.claims[place]["deleting"] or self.world.now()
        return Reply(200, dict(kind="Status", apiVersion="v1", metadata={}, status="Success"))

    def drop_job(self, place, policy):
        job = self.jobs.pop(place)
        job["thing"].ended = self.world.now()
        for m in self.world.machines.values():
            owner = (m.facts["meta"].get("ownerReferences") or [{}])[0].get("uid")
            if owner == job["object"]["metadata"]["uid"]:
                if policy == "Orphan":
                    m.facts["meta"].pop("ownerReferences")
                else:
                    m.facts["kept"] = False
                    m.terminate() if m.phase not in ("finished",
                                                     "failed") else m.enter("gone", self.world.now(), "user")

    # Control.

    def control(self, what, a):
        if what == "vanish":  # it was deleted, and so was its job
            place = next((k for k in self.jobs if k[1] == a["id"]), None)
            if place:
                self.drop_job(place, "Background")
            self.machine_of(a["id"]).vanish()
        elif what == "finish":
            m = self.machine_of(a["id"])
            m.facts["exit"] = a.get("exit_code", 0)
            m.enter("finished", self.world.now(), "exit")
        elif what == "untag" and any(k[1] == a["id"] for k in self.claims):
            for place, c in self.claims.items():
                if place[1] == a["id"]:
                    c["object"]["metadata"].update(labels={}, annotations={})
        elif what == "compact":
            self.sync()
            self.events, self.oldest = [], self.version
        else:
            told = super().control(what, a)
            self.sync()
            return told
        self.sync()
        return {}

    def reclaim(self, machine, in_seconds):
        """An eviction: the pod has its condition and deletionTimestamp from now on."""
        self.world.notice = max(self.world.notice, in_seconds)
        machine.reclaim(in_seconds)


if __name__ == "__main__":
    main(Kubernetes)
