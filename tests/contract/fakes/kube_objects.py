"""The objects of kubernetes.py: which nodes there are, which fields are known, what jobs and pods look like."""
import re

from rules import Rules
from world import stamp

PRODUCTS = {"Tesla-T4": 16, "NVIDIA-A10": 24, "NVIDIA-A100-SXM4-80GB": 80, "NVIDIA-H100-80GB-HBM3": 80}
META = "metadata.name metadata.namespace metadata.labels.* metadata.annotations.* "
CONTAINERS = " ".join("{0}spec.%s.N.%s" % (group, field) for group in ("containers", "initContainers") for field in (
    "name image command.N args.N env.N.name env.N.value env.N.valueFrom.* resources.limits.* resources.requests.* "
    "volumeMounts.N.* imagePullPolicy ports.N.* workingDir securityContext.* lifecycle.* stdin stdinOnce tty "
    "readinessProbe.* livenessProbe.* terminationMessagePath terminationMessagePolicy").split())
SPEC = CONTAINERS + " " + " ".join("{0}spec." + field for field in (
    "restartPolicy nodeSelector.* tolerations.N.* priorityClassName terminationGracePeriodSeconds volumes.N.* nodeName "
    "serviceAccountName automountServiceAccountToken imagePullSecrets.N.name activeDeadlineSeconds affinity.* "
    "hostNetwork "
    "runtimeClassName securityContext.* hostname subdomain dnsPolicy schedulerName enableServiceLinks hostIPC "
    "shareProcessNamespace topologySpreadConstraints.*").split())
POD = Rules("!apiVersion !kind " + META + SPEC.format(""))
JOB = Rules("!apiVersion !kind " + META + "spec.backoffLimit spec.activeDeadlineSeconds spec.ttlSecondsAfterFinished "
            "spec.suspend spec.parallelism spec.completions spec.completionMode spec.podFailurePolicy.* "
            "spec.podReplacementPolicy spec.template.metadata.labels.* spec.template.metadata.annotations.* " +
            SPEC.format("spec.template."))
TYPES_OF = {
    name: kind for kind, names in {
        (int, None): "backoffLimit activeDeadlineSeconds ttlSecondsAfterFinished parallelism completions containerPort "
        "terminationGracePeriodSeconds",
        (bool, None): "suspend hostNetwork stdin tty automountServiceAccountToken",
        (dict, None): "metadata spec template labels annotations nodeSelector resources limits requests affinity "
        "securityContext lifecycle",
        (list, dict): "containers initContainers tolerations env volumes volumeMounts imagePullSecrets ports",
        (list, str): "command args accessModes",
        (str, None): "kind apiVersion name namespace image restartPolicy key operator effect value nodeName workingDir "
        "priorityClassName imagePullPolicy serviceAccountName runtimeClassName completionMode",
    }.items() for name in names.split()
}
CLAIM = Rules("!apiVersion !kind " + META + "spec.accessModes.N spec.storageClassName spec.resources.requests.storage")


def node(name, zone, product, gpus, type):
    labels = {
        "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "node.kubernetes.io/instance-type": type
    }
    if gpus:
        labels.update({
            "nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus), "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.memory": str(PRODUCTS[product] * 1024)
        })
    return dict(name=name, labels=labels, gpus=gpus)


NODES = [
    node("t4-0", "zone-a", "Tesla-T4", 8, "g4"),
    node("t4-1", "zone-b", "Tesla-T4", 2, "g4"),
    node("a10-0", "zone-a", "NVIDIA-A10", 8, "g5"),
    node("a100-0", "zone-a", "NVIDIA-A100-SXM4-80GB", 8, "p4"),
    node("h100-0", "zone-b", "NVIDIA-H100-80GB-HBM3", 8, "p5"),
    node("cpu-0", "zone-a", "", 0, "m7")
]


def node_view(n):
    amounts = {
        "cpu": "32", "memory": "263856000Ki", "pods": "110", **({"nvidia.com/gpu": str(n["gpus"])} if n["gpus"] else {})
    }
    taints = [dict(key="nvidia.com/gpu", value="present", effect="NoSchedule")] if n["gpus"] else []
    return dict(
        kind="Node", apiVersion="v1", metadata=dict(name=n["name"], labels=n["labels"], uid="node-" + n["name"]),
        spec=dict(taints=taints), status=dict(allocatable=amounts, capacity=amounts,
                                              conditions=[dict(type="Ready", status="True", reason="KubeletReady")],
                                              addresses=[dict(type="InternalIP", address="127.0.0.1")]))


def gpus_of(spec):
    return sum(
        int((c.get("resources") or {}).get("limits", {}).get("nvidia.com/gpu", 0)) for c in spec.get("containers", []))


def check_types(value, status, path=""):
    """What Go's decoder says of a value of another type; maps whose keys are the user's own are not gone into."""
    for key, part in value.items():
        kind, of = TYPES_OF.get(key, (None, None))
        parts = part if kind is list and type(part) is list else [part]
        if kind and (type(part) is not kind or (of and any(type(p) is not of for p in parts))):
            raise status(
                400, f"json: cannot unmarshal {type(part).__name__} into Go struct field {path}{key} of type "
                f"{kind.__name__}")
        for p in parts if key not in ("labels", "annotations", "nodeSelector", "limits", "requests") else ():
            if isinstance(p, dict):
                check_types(p, status, f"{path}{key}.")


def check_labels(meta, status):
    for key, value in (meta.get("labels") or {}).items():
        word, name = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", key.rpartition("/")[2]
        good = re.fullmatch(f"({word})?", str(value)) and len(str(value)) <= 63
        if not isinstance(value, str) or not good or not re.fullmatch(word, name) or \
                len(name) > 63:
            raise status(
                422, f'metadata.labels: Invalid value: "{value}": a valid label must be an empty string or consist of '
                "alphanumeric characters, '-', '_' or '.', at most 63")


def check_pod(p, spec, in_job, status):
    if not spec.get("containers"):
        raise status(422, "spec.template.spec.containers: Required value")
    if in_job and spec.get("restartPolicy") not in ("Never", "OnFailure"):
        raise status(422, 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"')
    for c in spec["containers"]:
        if not c.get("name") or not c.get("image"):
            raise status(422, "spec.containers[0].name or image: Required value")
        resources = c.get("resources") or {}
        limit, asked = (resources.get(k, {}).get("nvidia.com/gpu") for k in ("limits", "requests"))
        for value in (limit, asked):
            if value is not None and not re.fullmatch(r"\d+", str(value)):
                raise status(422, f'resources.limits[nvidia.com/gpu]: Invalid value: "{value}": must be an integer')
        if asked is not None and str(asked) != str(limit):
            raise status(
                422, f'resources.requests[nvidia.com/gpu]: Invalid value: "{asked}": must be equal to nvidia.com/gpu '
                f"limit of {limit}")
    if in_job:
        check_labels((p["spec"]["template"].get("metadata") or {}), status)


def pod_view(m, now):
    meta = dict(m.facts["meta"], name=m.facts["pod"], namespace=m.facts["namespace"],
                creationTimestamp=stamp(m.created))
    conditions, state, phase, reason = [], {}, "Pending", None
    if m.facts["node"]:
        conditions.append(dict(type="PodScheduled", status="True"))
        state = dict(waiting=dict(reason="ContainerCreating"))
    else:
        conditions.append(
            dict(
                type="PodScheduled", status="False", reason="Unschedulable", message=m.facts.get("why") or
                "0/6 nodes are available: 5 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node "
                "affinity/selector."))
    if m.phase in ("running", "ending"):
        phase, state = "Running", dict(running=dict(startedAt=stamp(m.since)))
        conditions += [dict(type="Ready", status="True" if m.phase == "running" else "False")]
    if m.noticed() or (m.phase in ("ending", "gone") and m.reason == "reclaim"):
        conditions.append(
            dict(type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message="preempted"))
    if m.phase == "ending" or m.noticed():
        meta["deletionTimestamp"] = stamp(m.reclaim_at or m.since)
        meta["deletionGracePeriodSeconds"] = 30
    if m.phase == "failed":
        state = dict(waiting=dict(reason="ImagePullBackOff", message="Back-off pulling image"))
    if m.phase == "finished":
        code = m.facts["exit"]
        phase, reason = ("Failed", "Error") if code else ("Succeeded", "Completed")
        state = dict(terminated=dict(exitCode=code, reason=reason, finishedAt=stamp(m.since)))
    container = (m.facts["spec"].get("containers") or [{}])[0]
    statuses = [
        dict(name=container.get("name"), image=container.get("image"), imageID="", ready=m.phase == "running",
             restartCount=0, state=state)
    ] if state else []
    spec = dict(m.facts["spec"], **({"nodeName": m.facts["node"]} if m.facts["node"] else {}))
    return dict(
        kind="Pod", apiVersion="v1", metadata=meta, spec=spec, status=dict(
            phase=phase, conditions=conditions, containerStatuses=statuses,
            **({"podIP": "127.0.0.1", "hostIP": "127.0.0.1", "startTime": stamp(m.created)}
               if m.phase == "running" else {})))


def job_view(job, now):
    m, conditions, told = job["pod"], [], dict(failed=job["failures"] + (1 if job["failed"] else 0))
    if job["failed"]:
        at, reason, message = job["failed"]
        conditions = [dict(type="Failed", status="True", reason=reason, message=message, lastTransitionTime=stamp(at))]
    elif job["done"]:
        told["succeeded"] = 1
        conditions = [dict(type="Complete", status="True", lastTransitionTime=stamp(job["done"]))]
    elif m and m.phase in ("starting", "running", "ending"):
        told.update(active=1, ready=int(m.phase == "running"), startTime=stamp(m.created))
    return dict(kind="Job", apiVersion="batch/v1", metadata=job["object"]["metadata"], spec=job["object"]["spec"],
                status=dict(told, **({"conditions": conditions} if conditions else {})))


def kept(view, request, status):
    """Whether labelSelector and fieldSelector let the object through."""
    labels = view["metadata"].get("labels") or {}
    for part in re.findall(r"[^,(]+(?:\([^)]*\))?", request.arg("labelSelector", "")):
        some = re.fullmatch(r"\s*([^\s=!]+)\s+(in|notin)\s+\(([^)]*)\)\s*", part)
        one = re.fullmatch(r"\s*([^\s=!]+)\s*(==|=|!=)\s*(\S*)\s*", part)
        bare = re.fullmatch(r"\s*(!?)([^\s=!]+)\s*", part)
        if some:
            good = (labels.get(some[1]) in [v.strip() for v in some[3].split(",")]) == (some[2] == "in")
        elif one:
            good = (labels.get(one[1]) == one[3]) == (one[2] != "!=")
        elif bare:
            good = (bare[2] in labels) == (not bare[1])
        else:
            raise status(400, f"unable to parse requirement: {part}")
        if not good:
            return False
    for part in filter(None, request.arg("fieldSelector", "").split(",")):
        field, _, value = part.partition("=")
        have = {
            "metadata.name": view["metadata"]["name"], "spec.nodeName": (view.get("spec") or {}).get("nodeName", ""),
            "metadata.namespace": view["metadata"].get("namespace"), "status.phase": (view.get("status") or
                                                                                      {}).get("phase")
        }
        if field.rstrip("=!") not in have:
            raise status(400, f'field label not supported: {field}')
        if (have[field.rstrip("=!")] == value.lstrip("=")) == field.endswith("!"):
            return False
    return True
