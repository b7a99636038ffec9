"""Virtual machines of azure.py: PUT is create and update, deletions and allocations are asynchronous operations."""
import json, re

from base import Refusal, Reply, unbase64
from rules import Rules, flatten
from world import Machine, stamp

DISK = ("{0}.createOption {0}.diskSizeGB {0}.deleteOption {0}.name {0}.caching {0}.lun "
        "{0}.managedDisk.storageAccountType {0}.managedDisk.diskEncryptionSet.id {0}.managedDisk.securityProfile.*")
VIRTUAL_MACHINE = Rules(
    "!location zones.N tags.* identity.* plan.* properties.hardwareProfile.vmSize "
    "properties.storageProfile.imageReference.* properties.storageProfile.diskControllerType "
    "properties.osProfile.computerName properties.osProfile.adminUsername properties.osProfile.customData "
    "properties.osProfile.linuxConfiguration.* properties.osProfile.allowExtensionOperations "
    "properties.capacityReservation.capacityReservationGroup.id "
    "properties.networkProfile.networkInterfaces.N.id properties.networkProfile.networkInterfaces.N.properties.primary "
    "properties.networkProfile.networkInterfaces.N.properties.deleteOption properties.priority "
    "properties.evictionPolicy "
    "properties.billingProfile.maxPrice properties.userData properties.scheduledEventsProfile.* "
    "properties.securityProfile.* "
    "properties.diagnosticsProfile.* properties.additionalCapabilities.* " +
    DISK.format("properties.storageProfile.osDisk") + " " + DISK.format("properties.storageProfile.dataDisks.N"))
POWER = {
    "starting": "starting", "running": "running", "stopping": "deallocating", "stopped": "deallocated",
    "ending": "running"
}
STATE = {"starting": "Creating", "ending": "Deleting", "failed": "Failed"}


def invalid(target, message):
    return Refusal(400, "InvalidParameter", message, target=target)


class Compute:

    def vm(self, name=None):
        m = self.world.machines.get((name or self.place["name"]).lower())
        return m if m and m.phase != "gone" else None

    def need(self):
        m = self.vm()
        if not m:
            raise Refusal(
                404, "ResourceNotFound", f"The Resource 'Microsoft.Compute/virtualMachines/{self.place['name']}' "
                f"under resource group '{self.place['group']}' was not found.")
        return m

    def operation_reply(self, status, kind, machine, location, body=b"", **more):
        """An answer that names the address of its outcome."""
        id = self.world.uuid()
        self.operations[id] = dict(kind=kind, machine=machine, started=self.world.now(), **more)
        provider = (self.place["type"] or "Microsoft.Compute").partition("/")[0]
        url = (f"{self.url}/subscriptions/{self.subscription}/providers/{provider}/locations/{location}/"
               f"operations/{id}?api-version=2024-07-01")
        return Reply(
            status, body, headers={
                "Azure-AsyncOperation": url, "Location": url + "&monitor=true", "Retry-After": "1",
                "x-ms-request-id": self.request_id, "x-ms-ratelimit-remaining-subscription-writes": "199"
            })

    def do_getOperation(self, request):
        o = self.operations.get(self.place["below"])
        if not o:
            raise Refusal(404, "NotFound", "The operation was not found.")
        m, told = o["machine"], dict(name=self.place["below"], startTime=stamp(o["started"]))
        if o["kind"] == "create" and m.phase == "failed":
            error = o.get("error") or self.REFUSALS["capacity"]
            return Reply(200, dict(told, status="Failed", error=dict(code=error.code, message=error.message)))
        busy = m and {
            "create": m.phase == "starting", "delete": m.phase != "gone", "stop": m.phase == "stopping",
            "start": m.phase == "starting"
        }.get(o["kind"], False)
        if busy:
            return Reply(200, dict(told, status="InProgress"), headers={"Retry-After": "1"})
        return Reply(200, dict(told, status="Succeeded", endTime=stamp(self.world.now())))

    def do_putVirtualMachine(self, request):
        p, name = request.json(), self.place["name"]
        if p is None:
            raise Refusal(400, "InvalidRequestContent",
                          "The request content was invalid and could not be deserialized.")
        flat = flatten(p)
        if VIRTUAL_MACHINE.unknown(flat):
            path = VIRTUAL_MACHINE.unknown(flat)
            raise Refusal(
                400, "BadRequest", f"Could not find member '{path.rpartition('.')[2]}' on object of type "
                f"'ResourceDefinition'. Path '{path}'.")
        if not re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9]{0,62}[A-Za-z0-9])?", name):
            raise Refusal(400, "InvalidResourceName", f"Resource name {name} is invalid.")
        there = self.vm()
        if there:
            return self.update(there, p, request)
        self.checked(p)
        spot, cap = self.market(p)
        type, zone = p["properties"]["hardwareProfile"]["vmSize"], (p.get("zones") or [""])[0]
        late = self.take(("capacity", ), "putVirtualMachine", request)
        left = self.world.left(type, zone)
        if self.world.quota is not None and len(self.world.alive()) >= self.world.quota:
            raise self.refusal("quota", {})
        none = late is not None or left == 0
        self.world.taken(type, zone, 0 if none else 1)
        m = self.made(
            Machine(self.world, name.lower(), type, p["location"], zone, spot, self.price(type, spot, p["location"]),
                    name,
                    p.get("tags") or {}, cap, body=p, uuid=self.world.uuid(), off=False, event=None))
        self.disks_of(m, p)
        error = None
        if none:
            error = self.refusal("capacity", late or {})
            m.plan = [(self.world.now() + self.world.start, "failed", "capacity")]
            if (late or {}).get("reserves"):
                self.reserve(p, self.world.now() + late["reserves"])
        return self.operation_reply(201, "create", m, p["location"], self.view(m), error=error)

    def reserve(self, p, until):
        """Interfaces that outlive a machine that could not be made, and are kept for it for a while."""
        for nic in p["properties"]["networkProfile"]["networkInterfaces"]:
            there = self.resources[nic["id"].lower()]
            there["reserved"], there["thing"].dies_with = until, False
            for ip in there["addresses"]:
                self.resources[ip["id"].lower()]["thing"].dies_with = False

    def update(self, m, p, request):
        """PUT of a name that is there: what is omitted stays; what cannot change is refused."""
        if request.header("If-None-Match") == "*":
            raise Refusal(412, "PreconditionFailed", "The resource already exists.")
        old, new = m.facts["body"], p
        for path in ("location", "zones", "properties.osProfile.adminUsername", "properties.osProfile.customData",
                     "properties.priority", "properties.storageProfile.imageReference"):
            now, then = new, old
            for part in path.split("."):
                now, then = (now or {}).get(part), (then or {}).get(part)
            if now is not None and now != then:
                raise Refusal(409, "PropertyChangeNotAllowed", f"Changing property '{path}' is not allowed.",
                              target=path)
        m.tags.update(p.get("tags") or {})
        self.resize_to(m, (p.get("properties", {}).get("hardwareProfile") or {}).get("vmSize"))
        return Reply(200, self.view(m))

    def resize_to(self, m, type):
        if type and type != m.type:
            if type not in self.types:
                raise invalid("vmSize", f"The value {type} provided for the VM size is not valid.")
            m.type = type
            m.facts["body"]["properties"]["hardwareProfile"]["vmSize"] = type
            m.costs(self.price(type, m.spot, m.region))

    def check_size(self, q, told):
        storage, size = q["storageProfile"], q["hardwareProfile"]["vmSize"]
        kind = ((storage.get("osDisk") or {}).get("managedDisk") or {}).get("storageAccountType", "Standard_LRS")
        if kind.startswith("Premium") and told["PremiumIO"] != "True":
            raise Refusal(400, "InvalidParameter", "Requested operation cannot be performed because the VM size "
                          f"{size} does not support the storage account type {kind} of disk.")
        if storage["imageReference"].get("offer") in ("ubuntu-hpc", "ubuntu-24_04-lts"):
            if told["CpuArchitectureType"] != "x64":
                raise Refusal(400, "BadRequest", f"Cannot create a VM of size '{size}' because this VM size only "
                              "supports a CPU Architecture of 'Arm64', but an image with architecture 'x64' was given.")
            if "V2" not in told["HyperVGenerations"]:
                raise Refusal(400, "BadRequest", f"The selected VM size '{size}' cannot boot Hypervisor Generation "
                              "'2'.")

    def checked(self, p):
        q = p.get("properties") or {}
        size = (q.get("hardwareProfile") or {}).get("vmSize")
        if p["location"] not in self.REGIONS:
            raise Refusal(
                400, "LocationNotAvailableForResourceType", f"The provided location '{p['location']}' is not "
                "available for resource type 'Microsoft.Compute/virtualMachines'.")
        if size not in self.types:
            raise invalid("vmSize", f"The value {size} provided for the VM size is not valid.")
        if p["location"] not in self.types[size].facts.get("zones", [p["location"]]):
            raise Refusal(
                409, "SkuNotAvailable", f"The requested size for resource '{self.place['name']}' is currently not "
                f"available in location '{p['location']}'.")
        if not (q.get("storageProfile") or {}).get("imageReference"):
            raise invalid("imageReference", "Required parameter 'imageReference' is missing (null).")
        self.check_size(q, dict(dict(CpuArchitectureType="x64", PremiumIO="True", HyperVGenerations="V1,V2"),
                                **self.types[size].facts.get("told", {})))
        os = q.get("osProfile") or {}
        if not os.get("computerName") or not os.get("adminUsername"):
            raise invalid("osProfile", "Required parameter 'osProfile' is missing (null).")
        data = unbase64(os.get("customData", ""))
        if data is None or len(os.get("customData", "")) > 87380:
            raise invalid(
                "customData", "Custom data in OSProfile must be in Base64 encoding and with a maximum length of "
                "87380 characters.")
        nics = (q.get("networkProfile") or {}).get("networkInterfaces")
        if not nics:
            raise invalid("networkProfile", "Required parameter 'networkProfile' is missing (null).")
        for nic in nics:
            there = self.resources.get(nic.get("id", "").lower())
            if not there or there["location"] != p["location"]:
                raise Refusal(404, "NotFound", f"Resource {nic.get('id')} not found.")
            if there.get("machine") and self.vm(there["machine"]):
                raise Refusal(400, "NicInUse", f"Network Interface {nic['id']} is used by existing resource.")
        if len(p.get("tags") or {}) > 50 or any(
                len(k) > 512 or len(str(v)) > 256 or set(k) & set("<>%&\\?/")
                for k, v in (p.get("tags") or {}).items()):
            raise Refusal(400, "InvalidTagNameCharacters", "The tag names or values are too many, too long or contain "
                          "reserved characters.")

    def market(self, p):
        q = p["properties"]
        spot = q.get("priority", "Regular") == "Spot"
        if q.get("priority", "Regular") not in ("Regular", "Spot"):
            raise invalid("priority", f"The value {q['priority']} of priority is not valid.")
        if not spot and (q.get("evictionPolicy") or q.get("billingProfile")):
            raise Refusal(409, "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines",
                          "Eviction policy can be set only on "
                          "Azure Spot Virtual Machines.")
        if q.get("evictionPolicy", "Deallocate") not in ("Deallocate", "Delete"):
            raise invalid("evictionPolicy", "The eviction policy is not valid.")
        cap = (q.get("billingProfile") or {}).get("maxPrice", -1)
        if not isinstance(cap, (int, float)) or cap != -1 and cap <= 0:
            raise invalid("maxPrice", "maxPrice is -1 or more than 0.")
        if spot and cap != -1 and round(cap * 1e6) < self.price(q["hardwareProfile"]["vmSize"], True, p["location"]):
            raise self.refusal("spot_price", {})
        return spot, None if cap == -1 else round(cap * 1e6)

    def disks_of(self, m, p):
        """Disks bear no tags of their machine, and live on unless deleteOption is Delete; so do interfaces."""
        storage = p["properties"]["storageProfile"]
        disks = [(f"{m.name}_OsDisk_1_{self.world.word(32)}", storage.get("osDisk") or {})]
        disks += [(f"{m.name}_DataDisk_{d.get('lun', n)}_{self.world.word(8)}", d)
                  for n, d in enumerate(storage.get("dataDisks") or [])]
        for name, disk in disks:
            name = disk.get("name", name)
            thing = self.world.attach("disk", self.base + "Microsoft.Compute/disks/" + name, {}, m.id,
                                      disk.get("deleteOption") == "Delete", size=disk.get("diskSizeGB", 30))
            self.store("Microsoft.Compute/disks", name, p["location"], {}, dict(diskSizeGB=disk.get("diskSizeGB", 30)),
                       thing)
        for nic in p["properties"]["networkProfile"]["networkInterfaces"]:
            there = self.resources[nic["id"].lower()]
            there["machine"], there["thing"].machine, there["thing"].of = m.id, m.id, m.id
            there["thing"].dies_with = (nic.get("properties") or {}).get("deleteOption") == "Delete"
            for ip in there["addresses"]:
                address = self.resources[ip["id"].lower()]["thing"]
                address.machine, address.of, address.dies_with = m.id, m.id, ip["delete"] and there["thing"].dies_with

    def view(self, m):
        p = m.facts["body"]
        q = dict(p["properties"], vmId=m.facts["uuid"], provisioningState=STATE.get(m.phase, "Succeeded"),
                 timeCreated=stamp(m.created))
        q["osProfile"] = {k: v for k, v in q["osProfile"].items() if k != "customData"}
        return dict(id=self.base + "Microsoft.Compute/virtualMachines/" + m.name, name=m.name,
                    type="Microsoft.Compute/virtualMachines", location=m.region, tags=m.tags, properties=q,
                    **({"zones": p["zones"]} if p.get("zones") else {}))

    def do_getVirtualMachine(self, request):
        m = self.need()
        view = self.view(m)
        if self.place["action"] or "instanceView" in request.arg("$expand", ""):
            codes = ["ProvisioningState/" + STATE.get(m.phase, "succeeded").lower()]
            if m.phase in POWER:
                codes.append("PowerState/" + ("stopped" if m.facts["off"] else POWER[m.phase]))
            told = dict(statuses=[dict(code=c, level="Info", time=stamp(self.world.now())) for c in codes])
            if self.place["action"]:
                return Reply(200, told)
            view["properties"]["instanceView"] = told
        return Reply(200, view)

    def do_listVirtualMachines(self, request):
        rows = [self.view(m) for m in self.world.machines.values() if m.phase != "gone" and m.listed()]
        return self.listing(request, rows)

    def do_deleteVirtualMachine(self, request):
        m = self.vm()
        if not m:
            return Reply(204)
        m.terminate()
        return self.operation_reply(202, "delete", m, m.region)

    def do_patchVirtualMachine(self, request):
        m, p = self.need(), request.json() or {}
        m.tags.update(p.get("tags") or {})
        self.resize_to(m, ((p.get("properties") or {}).get("hardwareProfile") or {}).get("vmSize"))
        return self.operation_reply(200, "patch", m, m.region, self.view(m))

    def do_deallocate(self, request):
        m = self.need()
        if m.phase in ("starting", "ending", "failed"):
            raise Refusal(409, "OperationNotAllowed", f"The VM is {STATE.get(m.phase)}.")
        if m.phase == "running":
            m.stop()
        return self.operation_reply(202, "stop", m, m.region)

    def do_start(self, request):
        m = self.need()
        m.facts["off"] = False
        if m.phase == "stopped":
            m.restart()
        return self.operation_reply(202, "start", m, m.region)

    def do_powerOff(self, request):
        """Stopped, and billed all the same."""
        self.need().facts["off"] = True
        return self.operation_reply(202, "patch", self.need(), self.need().region)

    def do_simulateEviction(self, request):
        m = self.need()
        if not m.spot:
            raise Refusal(409, "OperationNotAllowed", "Only a Spot machine can be evicted.")
        self.reclaim(m, self.world.notice)
        return Reply(204)

    def reclaim(self, machine, in_seconds):
        delete = machine.facts["body"]["properties"].get("evictionPolicy") == "Delete"
        machine.reclaim(in_seconds, "ending" if delete else "stopping")
        machine.facts["event"] = self.world.uuid().upper()

    def metadata(self, request, machine, path):
        """Scheduled events; URL/_metadata/NAME stands for http://169.254.169.254. An acknowledged one happens now."""
        if path != "/metadata/scheduledevents" or request.header("Metadata").lower() != "true":
            return Reply(400 if path == "/metadata/scheduledevents" else 404, dict(error="Bad request"))
        event = machine.facts["event"] if machine.noticed() else None
        if request.method == "POST":
            wanted = [r.get("EventId") for r in (request.json() or {}).get("StartRequests", [])]
            if event not in wanted:
                return Reply(400, dict(error="no such event"))
            machine.go(next(p[1] for p in machine.plan if p[2] == "reclaim"), self.world.now(), "reclaim")
            return Reply(200, {})
        events = [
            dict(EventId=event, EventStatus="Scheduled", EventType="Preempt", ResourceType="VirtualMachine",
                 Resources=[machine.name], EventSource="Platform", Description="", DurationInSeconds=-1,
                 NotBefore=stamp(machine.reclaim_at, "%a, %d %b %Y %H:%M:%S GMT"))
        ] if event else []
        return Reply(200, json.dumps(dict(DocumentIncarnation=1 + bool(event), Events=events)))
