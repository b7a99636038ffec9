"""A client of azure.py. A machine's name is made from its token; its interface dies with it."""
import json, urllib.parse

from clients import ApiError, Client

PHASES = {
    "starting": "starting", "running": "running", "deallocating": "stopping", "deallocated": "stopped",
    "stopped": "stopped"
}


class Azure(Client):
    name, type, other, mismatch, lagging = "azure", "Standard_NC4as_T4_v3", "Standard_NV36ads_A10_v5", "", "list"
    CODES = dict(capacity="AllocationFailed", quota="OperationNotAllowed", throttle="TooManyRequests",
                 error="InternalServerError", auth="ExpiredAuthenticationToken", signature="invalid_client",
                 unknown="BadRequest", missing="InvalidParameter", spot_price="SpotPriceGreaterThanProvidedMaxPrice")
    create_operation, list_operation = "putVirtualMachine", "listResources"
    required, unknown = "osProfile", {"bogus": 1}
    made, bearer = 0, None

    def renew(self):
        self.bearer = None

    def login(self):
        form = dict(grant_type="client_credentials", client_id=self.credentials["AZURE_CLIENT_ID"],
                    client_secret=self.credentials["AZURE_CLIENT_SECRET"],
                    scope="https://management.azure.com/.default")
        status, got, text = self.fake.send("POST", f"/{self.credentials['AZURE_TENANT_ID']}/oauth2/v2.0/token",
                                           {"Content-Type": "application/x-www-form-urlencoded"},
                                           urllib.parse.urlencode(form).encode())
        value = json.loads(text)
        if status != 200:
            raise ApiError(status, value["error"], got, value["error_description"])
        self.bearer = value["access_token"]

    def call(self, method, path, body=None, version="2024-07-01", headers=(), whole=False):
        if not self.bearer:
            self.login()
        path = path.removeprefix(self.fake.settings["endpoints"]["management"])
        if version:
            path += ("&" if "?" in path else "?") + "api-version=" + version
        status, got, text = self.fake.send(
            method, path,
            dict({"Authorization": "Bearer " + self.bearer, "Content-Type": "application/json"}, **dict(headers)),
            b"" if body is None else json.dumps(body).encode())
        value = json.loads(text) if text else {}
        if status >= 300:
            raise ApiError(status, value["error"]["code"], got, value["error"]["message"])
        return (status, got, value) if whole else value

    def path(self, kind, name=""):
        base = f"/subscriptions/{self.fake.settings['subscription']}/resourceGroups/rille/providers/"
        return base + ("Microsoft.Compute/" if kind in ("virtualMachines", "disks") else
                       "Microsoft.Network/") + kind + ("/" + name if name else "")

    def put(self, token="", tag="", type=None, spot=False, cap=None, drop=None, **more):
        Azure.made += 1
        name = token or f"vm-{Azure.made}"
        tags = {"rille-lease": tag} if tag else {}
        self.call(
            "PUT", self.path("networkInterfaces", name),
            dict(
                location="eastus", tags=tags, properties=dict(
                    ipConfigurations=[dict(name="a", properties=dict(subnet=dict(id=self.fake.settings["subnet"])))])))
        q = dict(
            hardwareProfile=dict(vmSize=type or self.type),
            storageProfile=dict(imageReference=self.fake.settings["image"],
                                osDisk=dict(createOption="FromImage", deleteOption="Delete")),
            osProfile=dict(computerName=name, adminUsername="ubuntu"), networkProfile=dict(networkInterfaces=[
                dict(id=self.path("networkInterfaces", name), properties=dict(primary=True, deleteOption="Delete"))
            ]), **more)
        if spot:
            q.update(priority="Spot", evictionPolicy="Delete", billingProfile=dict(maxPrice=float(cap) if cap else -1))
        q.pop(drop, None)
        return name, self.call("PUT", self.path("virtualMachines", name),
                               dict(location="eastus", tags=tags, properties=q), whole=True)

    def create(self, **request):
        return self.put(**request)[0]

    def order(self, **request):
        name, (status, headers, _) = self.put(**request)
        self.fake.control("advance", seconds=1)
        told = self.call("GET", headers["Azure-AsyncOperation"], version="") if status == 201 else dict(
            status="Succeeded")
        if told["status"] == "Failed":
            self.terminate(name)
            self.fake.control("advance", seconds=5)
            raise ApiError(200, told["error"]["code"], headers, told["error"]["message"])
        return name

    def describe(self, name):
        try:
            got = self.call("GET", self.path("virtualMachines", name) + "?$expand=instanceView")
        except ApiError as e:
            if e.code == "ResourceNotFound":
                return "gone"
            raise
        if got["properties"]["provisioningState"] in ("Deleting", "Failed"):
            return {"Deleting": "ending", "Failed": "failed"}[got["properties"]["provisioningState"]]
        return PHASES[got["properties"]["instanceView"]["statuses"][1]["code"].partition("/")[2]]

    def list(self, tag):
        found, version = [], "2021-04-01"
        query = urllib.parse.urlencode({
            "$filter": f"tagName eq 'rille-lease' and tagValue eq '{tag}' and resourceType eq "
            "'Microsoft.Compute/virtualMachines'"
        })
        link = f"/subscriptions/{self.fake.settings['subscription']}/resources?{query}"
        while link:
            got = self.call("GET", link, version=version)
            found += [r["name"] for r in got["value"]]
            link, version = got.get("nextLink"), ""
        return found

    def terminate(self, name):
        self.call("DELETE", self.path("virtualMachines", name) + "?forceDeletion=true")

    def prices(self, where):
        query = urllib.parse.urlencode({"api-version": "2023-01-01-preview", "$filter": where})
        return json.loads(self.fake.send("GET", "/api/retail/prices?" + query)[2])

    def price(self):
        rows = self.prices(
            f"serviceName eq 'Virtual Machines' and armRegionName eq 'eastus' and armSkuName eq '{self.type}' "
            "and priceType eq 'Consumption'")["Items"]
        return round(
            next(r["retailPrice"] for r in rows if "Spot" in r["skuName"] and "Windows" not in r["productName"]) * 1e6)

    def notice(self, id):
        status, _, text = self.fake.send("GET", f"/_metadata/{id}/metadata/scheduledevents?api-version=2020-07-01",
                                         {"Metadata": "true"})
        events = json.loads(text)["Events"]
        return events[0]["EventId"] if events else None

    def special(self, t):
        t.code("MissingApiVersionParameter", lambda: self.call("GET", self.path("virtualMachines"), version=""))
        t.code("ResourceGroupNotFound", lambda: self.call("GET",
                                                          self.path("virtualMachines", "x").replace("rille", "no")))
        t.code("invalid_client", lambda: Azure(t.fake, AZURE_CLIENT_SECRET="x").list("x"))
        t.code(
            "NotFound", lambda: self.call(
                "PUT", self.path("virtualMachines", "a"),
                dict(
                    location="eastus", properties=dict(hardwareProfile=dict(vmSize=self.type), storageProfile=dict(
                        imageReference=dict(id="x")), osProfile=dict(computerName="a", adminUsername="a"),
                                                       networkProfile=dict(networkInterfaces=[dict(id="/nowhere")])))))
        name, (status, headers, body) = self.put(token="vm-a", tag="x")
        t.equal((status, body["properties"]["provisioningState"]), (201, "Creating"))
        t.fake.control("set", start=10)
        t.turn(20)
        t.equal(self.call("GET", headers["Azure-AsyncOperation"], version="")["status"], "Succeeded")
        t.code("PropertyChangeNotAllowed",
               lambda: self.call("PUT", self.path("virtualMachines", name), dict(location="westus3", properties={})))
        t.code(
            "PreconditionFailed", lambda: self.call("PUT", self.path(
                "virtualMachines", name), dict(location="eastus", properties={}), headers={"If-None-Match": "*"}))
        t.code("NicInUse", lambda: self.call("DELETE", self.path("networkInterfaces", name)))
        self.call("POST", self.path("virtualMachines", name) + "/powerOff")
        before = t.machine(name)["bill"]
        t.turn(3600)
        t.equal(t.machine(name)["bill"] - before > 500_000, True)
        self.call("POST", self.path("virtualMachines", name) + "/deallocate")
        t.turn(5)
        t.equal(self.describe(name), "stopped")
        self.call("PATCH", self.path("virtualMachines", name),
                  dict(properties=dict(hardwareProfile=dict(vmSize=self.other))))
        t.equal(t.machine(name)["type"], self.other)
        status, headers, _ = self.call("DELETE", self.path("virtualMachines", name), whole=True)
        t.equal(status, 202)
        t.equal(self.call("GET", headers["Azure-AsyncOperation"], version="")["status"], "InProgress")
        t.turn(5)
        t.equal(self.call("DELETE", self.path("virtualMachines", name), whole=True)[0], 204)
        # A public address and a disk that live on.
        self.call(
            "PUT", self.path("publicIPAddresses", "ip"),
            dict(location="eastus", sku=dict(name="Standard"), properties=dict(publicIPAllocationMethod="Static"),
                 tags={"rille-lease": "y"}))
        self.call(
            "PUT", self.path("networkInterfaces", "n"),
            dict(
                location="eastus", properties=dict(ipConfigurations=[
                    dict(
                        name="a", properties=dict(subnet=dict(id=t.fake.settings["subnet"]), publicIPAddress=dict(
                            id=self.path("publicIPAddresses", "ip"))))
                ])))
        t.code("PublicIPAddressCannotBeDeleted", lambda: self.call("DELETE", self.path("publicIPAddresses", "ip")))
        self.call(
            "PUT", self.path("virtualMachines", "b"),
            dict(
                location="eastus",
                properties=dict(hardwareProfile=dict(vmSize=self.type),
                                storageProfile=dict(imageReference=dict(id="x")),
                                osProfile=dict(computerName="a", adminUsername="a"),
                                networkProfile=dict(networkInterfaces=[dict(id=self.path("networkInterfaces", "n"))]))))
        t.turn(20)
        self.terminate("b")
        t.turn(20)
        t.equal(sorted(o["kind"] for o in t.fake.state()["objects"] if o["alive"] and o["billable"]),
                ["address", "disk"])
        left = t.machine("b")["bills"]
        t.turn(7200)  # both cost on
        t.assertTrue(all(t.machine("b")["bills"][part] > left[part] > 0 for part in ("address", "disk")), left)
        disk = self.call("GET", self.path("disks"))["value"][0]["name"]
        for kind, what in (("networkInterfaces", "n"), ("publicIPAddresses", "ip"), ("disks", disk)):
            self.call("DELETE", self.path(kind, what))
        t.equal(t.fake.state()["alive"], 0)
        self.volumes(t)
        # Eviction: acknowledged, it happens at once.
        name = self.create(tag="z", spot=True)
        t.turn(20)
        self.call("POST", self.path("virtualMachines", name) + "/simulateEviction")
        event = self.notice(name)
        t.fake.send("POST", f"/_metadata/{name}/metadata/scheduledevents?api-version=2020-07-01", {"Metadata": "true"},
                    json.dumps(dict(StartRequests=[dict(EventId=event)])).encode())
        t.turn(2)
        t.equal(self.describe(name), "gone")
        t.fake.control("set", page_size=3)
        t.equal("NextPageLink" in self.prices("armRegionName eq 'eastus'"), True)
        t.turn(4000)
        t.fake.control("advance", seconds=4000, wall=True)
        t.code("ExpiredAuthenticationToken", lambda: self.list("x"))

    def volumes(self, t):
        at, body = self.path("disks", "data"), dict(
            location="eastus", tags={"rille-lease": "volume"}, sku=dict(name="Premium_LRS"),
            properties=dict(creationData=dict(createOption="Empty"), diskSizeGB=10))
        for _ in range(2):  # a second time it is the same
            self.call("PUT", at, body)
        disk = self.call("GET", at)
        t.equal((disk["sku"]["name"], disk["properties"]["diskSizeGB"]), ("Premium_LRS", 10))
        t.equal("managedBy" in disk, False)
        for wrong in (dict(sku=dict(name="Floppy")), dict(properties=dict(body["properties"], diskSizeGB=0))):
            t.code("InvalidParameter", lambda: self.call("PUT", self.path("disks", "x"), dict(body, **wrong)))
        t.code("BadRequest", lambda: self.call("PUT", self.path("disks", "x"), dict(body, properties=dict(bogus=1))))
        self.call("PUT", self.path("disks", "zonal"), dict(body, zones=["1"]))
        one, two = (self.create(tag="volume", type="Standard_D2s_v5") for _ in range(2))

        def attach(vm, disk="data", **more):
            asked = dict(dict(diskId=self.path("disks", disk), lun=0, caching="None", deleteOption="Detach"), **more)
            return self.call("POST", self.path("virtualMachines", vm) + "/attachDetachDataDisks",
                             dict(dataDisksToAttach=[asked]))

        t.code("OperationNotAllowed", lambda: attach(one))  # it does not run yet
        t.turn(20)
        t.code("NotFound", lambda: attach(one, "none"))
        t.code("BadRequest", lambda: attach(one, "zonal"))
        attach(one)
        t.code("ConflictingUserInput", lambda: attach(two))
        self.call("PUT", self.path("disks", "more"), body)
        t.code("ConflictingUserInput", lambda: attach(one, "more"))  # the unit is taken
        attach(one, "more", lun=1)
        shown = self.call("GET", self.path("virtualMachines", one))["properties"]["storageProfile"]["dataDisks"]
        t.equal([d["lun"] for d in shown], [0, 1])
        t.equal(self.call("GET", at)["managedBy"].rpartition("/")[2], one)
        t.code("OperationNotAllowed", lambda: self.call("DELETE", at))
        for vm in (one, two):
            self.terminate(vm)
        t.turn(20)
        t.equal(t.fake.state()["alive"], 3)  # the volumes have outlived them
        for name in ("data", "more", "zonal"):
            self.call("DELETE", self.path("disks", name))
        t.equal(t.fake.state()["alive"], 0)
