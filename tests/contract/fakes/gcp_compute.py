"""Instances of gcp.py and the operations by which everything there happens."""
import re, uuid

from base import Refusal, Reply
from gcp_disks import PERSISTENT
from rules import Rules, flatten
from world import Machine, stamp, unstamp

TIME = "%Y-%m-%dT%H:%M:%S.000-00:00"
INSTANCE = Rules(
    "!name !machineType description labels.* tags.items.N canIpForward minCpuPlatform deletionProtection "
    "disks.N.boot disks.N.autoDelete disks.N.deviceName disks.N.type disks.N.mode disks.N.source disks.N.diskSizeGb "
    "disks.N.initializeParams.* disks.N.diskEncryptionKey.* networkInterfaces.N.network networkInterfaces.N.subnetwork "
    "networkInterfaces.N.nicType networkInterfaces.N.networkIP networkInterfaces.N.accessConfigs.N.type "
    "networkInterfaces.N.accessConfigs.N.name networkInterfaces.N.accessConfigs.N.networkTier "
    "guestAccelerators.N.acceleratorType guestAccelerators.N.acceleratorCount scheduling.provisioningModel "
    "scheduling.instanceTerminationAction scheduling.onHostMaintenance scheduling.automaticRestart "
    "scheduling.preemptible "
    "scheduling.maxRunDuration.seconds scheduling.maxRunDuration.nanos scheduling.terminationTime metadata.items.N.key "
    "metadata.items.N.value serviceAccounts.N.email serviceAccounts.N.scopes.N shieldedInstanceConfig.* "
    "reservationAffinity.* resourcePolicies.N confidentialInstanceConfig.* advancedMachineFeatures.*")
FIREWALL = Rules(
    "!name description network priority sourceRanges.N sourceTags.N targetTags.N direction disabled "
    "allowed.N.IPProtocol allowed.N.ports.N denied.N.IPProtocol denied.N.ports.N destinationRanges.N")
STATUS = {"running": "RUNNING", "stopping": "STOPPING", "ending": "STOPPING", "stopped": "TERMINATED"}


class Compute:

    def link(self, path):
        return f"{self.url}/compute/v1/projects/{self.project}/{path}"

    # Operations.

    def operation(self, kind, machine, zone, target, error=None, user="rille"):
        name = f"operation-{int(self.world.now() * 1000)}-{self.world.word(13)}"
        self.operations[name] = dict(name=name, kind=kind, machine=machine, zone=zone, target=target, error=error,
                                     user=user, begun=self.world.now(), id=str(10**18 + len(self.operations)))
        return self.operations[name]

    def operation_view(self, o):
        m, late = o["machine"], self.world.now() - o["begun"] < self.world.start
        busy = o.get("looks", 0) > 0 or {
            "insert": late, "delete": m and m.phase == "ending", "stop": m and m.phase == "stopping", "start": m and
            m.phase == "starting"
        }.get(o["kind"], False)
        type = "compute.instances.preempted" if o["kind"] == "preempted" else o["kind"]
        place = "zones/" + o["zone"] if o["zone"] else "global"
        view = dict(kind="compute#operation", id=o["id"], name=o["name"], operationType=type, user=o["user"],
                    status="RUNNING" if busy else "DONE", progress=0 if busy else 100, targetLink=o["target"],
                    insertTime=stamp(o["begun"], TIME), selfLink=self.link(f"{place}/operations/{o['name']}"),
                    **({"zone": self.link(place)} if o["zone"] else {}))
        if o["error"] and not busy:
            view.update(error=dict(errors=[dict(code=o["error"].code, message=o["error"].message)]),
                        httpErrorStatusCode=o["error"].status, httpErrorMessage="SERVICE UNAVAILABLE")
        return view

    def getOperation(self, request):
        o = self.operations.get(self.place["name"])
        if not o or o["zone"] != self.place.groupdict().get("zone", ""):
            raise self.absent(request.path)
        if o.get("looks", 0) > 0:
            o["looks"] -= 1
            if o["looks"] == 0:
                o["then"]()
        return Reply(200, self.operation_view(o))

    getGlobalOperation = getOperation

    # Firewall rules: they belong to no zone, have no labels, and hold for machines by their network tags.

    def firewalls(self):
        return [t.facts["body"] for t in self.world.things.values() if t.kind == "firewall" and t.ended is None]

    def insertFirewall(self, request):
        known = self.once(request, "insertFirewall")
        if known:
            return known
        p = request.json() or {}
        wrong = FIREWALL.unknown(flatten(p)) or FIREWALL.missing(flatten(p))
        if wrong or not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", str(p["name"])):
            raise self.invalid(f"Invalid value for field 'resource.{wrong or 'name'}'.")
        if ("allowed" in p) == ("denied" in p) or type(p.get("priority", 1000)) is not int or \
                not 0 <= p.get("priority", 1000) <= 65535 or p.get("direction", "INGRESS") not in ("INGRESS", "EGRESS"):
            raise self.invalid("A rule allows or denies, at a priority from 0 to 65535, in one direction.")
        if not re.search(r"(^|/)global/networks/[^/]+$", p.get("network", "global/networks/default")):
            raise self.invalid("Invalid value for field 'resource.network'.")
        for one in p.get("sourceRanges") or []:
            if not re.fullmatch(r"(\d{1,3}\.){3}\d{1,3}/\d{1,2}", one):
                raise self.invalid(f"Invalid value for field 'resource.sourceRanges': '{one}'.")
        for tag in p.get("targetTags") or []:
            if not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", tag):
                raise self.invalid(f"Invalid value for field 'resource.targetTags': '{tag}'.")
        if any(rule["name"] == p["name"] for rule in self.firewalls()):
            raise Refusal(409, "alreadyExists", f"The resource 'projects/{self.project}/global/firewalls/{p['name']}' "
                          "already exists", word="ALREADY_EXISTS")
        # It costs nothing; what a test leaves of them is counted all the same.
        self.world.attach("firewall", "firewall " + self.world.word(8), dict(rille=p.get("description", "").split()[0]),
                          None, False, True, body=dict(p, kind="compute#firewall"))
        return self.said(request, "insertFirewall",
                         self.operation("insert", None, "", self.link("global/firewalls/" + p["name"])))

    def rule_there(self, request):
        for t in self.world.things.values():
            if t.kind == "firewall" and t.ended is None and t.facts["body"]["name"] == self.place["name"]:
                return t
        raise self.absent(request.path)

    def getFirewall(self, request):
        return Reply(200, self.rule_there(request).facts["body"])

    def deleteFirewall(self, request):
        rule, done = self.rule_there(request), self.operation("delete", None, "", request.path)
        late = self.take(("late_done", ), "deleteFirewall", request) or {}
        if late.get("code"):
            done["error"] = Refusal(400, late["code"], late.get("message", "It cannot be done."))

        def then():
            rule.ended = None if done["error"] else self.world.now()

        done.update(looks=late.get("looks", 0), then=then)
        if not late:
            then()
        return self.said(request, "deleteFirewall", done)

    def waitOperation(self, request):
        """Answers at once, done or not, as the real one may after two minutes."""
        return self.getOperation(request)

    def once(self, request, kind):
        """The operation of this requestId, if there was one."""
        id = request.arg("requestId")
        if id is None:
            return None
        try:
            good = uuid.UUID(id).int != 0 and len(id) == 36
        except ValueError:
            good = False
        if not good:
            raise self.invalid(f"Invalid value for field 'requestId': '{id}'. It must be a valid UUID.")
        known = self.world.recall(kind, id)
        return Reply(200, self.operation_view(known[1])) if known else None

    def said(self, request, kind, operation):
        if request.arg("requestId"):
            self.world.remember(kind, request.arg("requestId"), "", operation)
        return Reply(200, self.operation_view(operation))

    # Instances.

    def insertInstance(self, request):
        known = self.once(request, "insert")
        if known:
            return known
        p, zone = request.json(), self.place["zone"]
        self.checked(p, zone)
        if self.find(p["name"], zone):
            raise Refusal(
                409, "alreadyExists", f"The resource 'projects/{self.project}/zones/{zone}/instances/{p['name']}' "
                "already exists", word="ALREADY_EXISTS")
        type, spot = self.type_of(p), self.spot_of(p)
        target = self.link(f"zones/{zone}/instances/{p['name']}")
        if self.world.quota is not None and len(self.world.alive()) >= self.world.quota:
            raise self.refusal("quota", {})
        fault, left = self.take(("capacity", ), "insertInstance", request), self.world.left(type, zone)
        if fault or left == 0:
            return self.said(request, "insert",
                             self.operation("insert", None, zone, target, self.refusal("capacity", fault or {})))
        self.world.taken(type, zone, 1)
        return self.said(request, "insert", self.operation("insert", self.launch(p, zone, type, spot), zone, target))

    def launch(self, p, zone, type, spot):
        m = self.made(
            Machine(self.world, p["name"], type, zone[:-2], zone, spot, self.price(type, spot, zone[:-2]), p["name"],
                    p.get("labels") or {}, None, body=p, number=str(10**18 + len(self.world.machines))))
        scheduling = p.get("scheduling") or {}
        if scheduling.get("maxRunDuration") or scheduling.get("terminationTime"):
            at = unstamp(scheduling.get("terminationTime"))
            if at is not None:
                at = self.world.of_wall(at)
            else:
                at = m.created + int(scheduling["maxRunDuration"]["seconds"])
            if scheduling["instanceTerminationAction"] == "DELETE":
                m.expire(at)
            else:
                m.expires_at = at
                m.go("stopping", at, "expired")
        addresses = sum(len(nic.get("accessConfigs") or []) for nic in p["networkInterfaces"])
        m.addresses = addresses / 2 if m.spot else addresses  # of a spot machine at half the price
        for n, disk in enumerate(p["disks"]):
            name = (disk.get("initializeParams") or {}).get("diskName") or (m.name if n == 0 else f"{m.name}-{n}")
            labels = (disk.get("initializeParams") or {}).get("labels") or {}
            size = (disk.get("initializeParams") or {}).get("diskSizeGb", "10")
            kind = (disk.get("initializeParams") or {}).get("diskType", "pd-standard").rpartition("/")[2]
            device = disk.get("deviceName", f"persistent-disk-{n}")
            self.world.attach("disk", f"{zone}/{name}", labels, m.id, disk.get("autoDelete", False), zone=zone,
                              name=name, size=str(size), type=kind, device=device)
        return m

    def type_of(self, p):
        """The row of the catalogue: the machine type, with the accelerators that are attached to it."""
        name = p["machineType"].rpartition("/")[2]
        extra = [(a.get("acceleratorType", "").rpartition("/")[2], a.get("acceleratorCount", 0))
                 for a in p.get("guestAccelerators") or [] if a.get("acceleratorCount")]
        if extra and name.startswith("n1-"):
            return f"{name}+{extra[0][0]}:{extra[0][1]}"
        return name

    def spot_of(self, p):
        scheduling = p.get("scheduling") or {}
        return scheduling.get("provisioningModel") == "SPOT" or scheduling.get("preemptible", False)

    def checked(self, p, zone):
        unknown = INSTANCE.unknown(flatten(p))
        if unknown:
            raise self.invalid(f'Invalid JSON payload received. Unknown name "{unknown}": Cannot find field.')
        if not re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", str(p.get("name", ""))):
            raise self.invalid(f"Invalid value for field 'resource.name': '{p.get('name')}'. Must be a match of regex "
                               "'(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'")
        if f"zones/{zone}/machineTypes/" not in str(p.get("machineType", "")):
            raise self.invalid(
                f"Invalid value for field 'resource.machineType': '{p.get('machineType')}'. The URL is malformed "
                "or of another zone.")
        type = self.type_of(p)
        if type not in self.types or zone not in self.types[type].facts.get("zones", [zone]):
            raise self.invalid(
                f"Invalid value for field 'resource.machineType': '{type}'. Machine type does not exist in zone "
                f"{zone}.")
        disks = p.get("disks") or []
        if not disks or not disks[0].get("boot") or not (disks[0].get("initializeParams") or {}).get("sourceImage"):
            raise self.invalid("Invalid value for field 'resource.disks': ''. At least one boot disk with an image.")
        for disk in disks:
            takes = self.types[type].facts.get("disks", PERSISTENT)
            kind = (disk.get("initializeParams") or {}).get("diskType", "pd-standard").rpartition("/")[2]
            if kind not in takes:
                raise self.invalid(f"[{kind}] features are not compatible for creating instance: {type} takes "
                                   f"{', '.join(takes)}.")
        if not p.get("networkInterfaces"):
            raise self.invalid(
                "Invalid value for field 'resource.networkInterfaces': ''. At least one network interface is "
                "required.")
        self.check_labels(p.get("labels") or {})
        self.check_scheduling(p, type)

    def check_labels(self, labels):
        for key, value in labels.items():
            if not re.fullmatch(r"[a-z][-_a-z0-9]{0,62}", key) or not re.fullmatch(r"[-_a-z0-9]{0,63}", str(value)):
                raise self.invalid(
                    f"Invalid value for field 'resource.labels': '{key}={value}'. Label keys and values are "
                    "lower-case letters, digits, underscores and dashes, at most 63.")

    def check_scheduling(self, p, type):
        s = p.get("scheduling") or {}
        if self.types[type].count and s.get("onHostMaintenance") != "TERMINATE":
            raise self.invalid("Instances with guest accelerators do not support live migration.")
        if self.types[type].name.startswith("e2-") and not self.spot_of(p) and \
                s.get("onHostMaintenance", "MIGRATE") != "MIGRATE":
            raise self.invalid("Scheduling option onHostMaintenance: E2 that is not preemptible is migrated.")
        if self.spot_of(p) and s.get("onHostMaintenance", "TERMINATE") != "TERMINATE":
            raise self.invalid("Scheduling must have onHostMaintenance TERMINATE for preemptible instances.")
        if self.spot_of(p) and s.get("automaticRestart", True):
            raise self.invalid("Scheduling must have automaticRestart false for preemptible instances.")
        if s.get("instanceTerminationAction", "STOP") not in ("STOP", "DELETE"):
            raise self.invalid("Invalid value for field 'scheduling.instanceTerminationAction'.")
        if s.get("maxRunDuration"):
            seconds = str(s["maxRunDuration"].get("seconds", ""))
            if not seconds.isdigit() or not 30 <= int(seconds) <= 120 * 86400 or "instanceTerminationAction" not in s:
                raise self.invalid(
                    "maxRunDuration is between 30 seconds and 120 days, and needs instanceTerminationAction.")
        if s.get("terminationTime"):
            at = unstamp(s["terminationTime"])
            if at is None or not 30 <= at - self.world.wall() <= 120 * 86400 or s.get("maxRunDuration") or \
                    "instanceTerminationAction" not in s:
                raise self.invalid("terminationTime is 30 seconds to 120 days ahead, needs instanceTerminationAction "
                                   "and stands alone.")

    def find(self, name, zone):
        m = self.world.machines.get(name)
        return m if m and m.zone == zone and m.phase != "gone" else None

    def need(self, request):
        m = self.find(self.place["name"], self.place["zone"])
        if not m:
            raise self.absent(f"projects/{self.project}/zones/{self.place['zone']}/instances/{self.place['name']}")
        return m

    def instance(self, m):
        p = m.facts["body"]
        early = self.world.now() - m.since < self.world.start / 2
        boots = f"{m.zone}/{(p['disks'][0].get('initializeParams') or {}).get('diskName') or m.name}"
        nic = dict(name="nic0", networkIP="10.128.0.2", network=self.link("global/networks/default"))
        if p["networkInterfaces"][0].get("accessConfigs") and m.phase == "running":
            nic["accessConfigs"] = [dict(type="ONE_TO_ONE_NAT", name="External NAT", natIP="127.0.0.1")]
        return dict(
            kind="compute#instance", id=m.facts["number"], name=m.name, creationTimestamp=stamp(m.created, TIME),
            **({"lastStartTimestamp": stamp(m.segments[-1][0], TIME)} if m.segments else {}),
            status=STATUS.get(m.phase, "PROVISIONING" if early else "STAGING"), zone=self.link("zones/" + m.zone),
            machineType=self.link(f"zones/{m.zone}/machineTypes/{m.type.partition('+')[0]}"), labels=m.tags,
            labelFingerprint="42WmSpB8rSM=", networkInterfaces=[nic], scheduling=p.get("scheduling") or {},
            guestAccelerators=p.get("guestAccelerators") or [], metadata=dict(p.get("metadata") or {}, fingerprint="x"),
            selfLink=self.link(f"zones/{m.zone}/instances/{m.name}"), disks=[
                dict(boot=t.id == boots, autoDelete=t.dies_with, deviceName=t.facts.get("device", ""),
                     source=self.link(f"zones/{m.zone}/disks/{t.facts['name']}"))
                for t in self.world.things.values() if t.machine == m.id and t.kind == "disk"
            ])

    def getInstance(self, request):
        return Reply(200, self.instance(self.need(request)))

    def deleteInstance(self, request):
        known = self.once(request, "delete")
        if known:
            return known
        m = self.need(request)
        m.terminate()
        return self.said(request, "delete",
                         self.operation("delete", m, m.zone, self.link(f"zones/{m.zone}/instances/{m.name}")))

    def act(self, action, request):
        m, p = self.need(request), request.json() or {}
        target = self.link(f"zones/{m.zone}/instances/{m.name}")
        if action == "stop" and m.phase == "running":
            m.stop()
        elif action == "start" and m.phase == "stopped":
            m.restart()
        elif action == "setLabels":
            if p.get("labelFingerprint") != "42WmSpB8rSM=":
                raise Refusal(412, "conditionNotMet",
                              "Labels fingerprint either invalid or resource labels have changed",
                              word="FAILED_PRECONDITION")
            m.tags = dict(p.get("labels") or {})
        elif action == "setMachineType":
            type = str(p.get("machineType", "")).rpartition("/")[2]
            if m.phase != "stopped" or type not in self.types:
                raise self.invalid(
                    "Instance needs to be stopped before its machine type can be changed, to one that exists.")
            m.type = type
            m.costs(self.price(type, m.spot, m.region))
        return Reply(200, self.operation_view(self.operation(action, m, m.zone, target)))

    def reclaim(self, machine, in_seconds):
        """Preemption: an operation of its own tells of it."""
        delete = (machine.facts["body"].get("scheduling") or {}).get("instanceTerminationAction") == "DELETE"
        machine.reclaim(in_seconds, "ending" if delete else "stopping")
        o = self.operation("preempted", machine, machine.zone,
                           self.link(f"zones/{machine.zone}/instances/{machine.name}"), user="system")
        o["begun"] = machine.reclaim_at
