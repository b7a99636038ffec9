"""What azure.py has beside virtual machines: network, groups, lists by tag, catalogue, quotas, prices."""
import math, re, urllib.parse

from base import Refusal, Reply
from rules import Rules, flatten
from world import RESERVED, YEAR_H, stamp

IMAGE = dict(publisher="microsoft-dsvm", offer="ubuntu-hpc", sku="2204", version="latest")
RULE = Rules(
    "!name id properties.description !properties.protocol !properties.access !properties.direction "
    "!properties.priority !properties.sourcePortRange !properties.destinationPortRange "
    "properties.sourceAddressPrefix properties.sourceAddressPrefixes.N !properties.destinationAddressPrefix")
RANGE = re.compile(r"\*|(\d{1,3}\.){3}\d{1,3}/\d{1,2}|[A-Z][A-Za-z]+")
KINDS = {
    "NetworkInterface": ("Microsoft.Network/networkInterfaces", "interface", False),
    "PublicIPAddress": ("Microsoft.Network/publicIPAddresses", "address", True),
    "VirtualNetwork": ("Microsoft.Network/virtualNetworks", "network", False),
    # It costs nothing; what a test leaves of them is counted all the same.
    "NetworkSecurityGroup": ("Microsoft.Network/networkSecurityGroups", "security group", True),
    "Disk": ("Microsoft.Compute/disks", "disk", True)
}


class More:
    endless = False  # the history of prices has always one more page

    def set(self, values):
        self.endless = values.pop("endless", self.endless)
        super().set(values)

    def furnish_network(self):
        """The network that is there already."""
        for type, properties in (("virtualNetworks", dict(subnets=[dict(name="default")])), ("networkSecurityGroups",
                                                                                             {})):
            thing = self.world.attach("network", self.base + "Microsoft.Network/" + type + "/rille", {}, None, False,
                                      False)
            self.store("Microsoft.Network/" + type, "rille", "eastus", {}, properties, thing)

    def store(self, type, name, location, tags, properties, thing):
        id = self.base + type + "/" + name
        thing.tags.update(tags)
        self.resources[id.lower()] = dict(id=id, name=name, type=type, location=location, tags=tags, thing=thing,
                                          properties=properties, addresses=[])
        return self.resources[id.lower()]

    def live(self, id):
        r = self.resources.get(id.lower())
        return r if r and r["thing"].ended is None else None

    def show(self, r):
        shown = dict({k: r[k] for k in ("id", "name", "type", "location", "tags")},
                     properties=dict(r["properties"], provisioningState="Succeeded"))
        return dict(shown, **self.told_of_disk(r)) if r["type"] == KINDS["Disk"][0] else shown

    def plain(self, operation, kind, request):
        """A resource that is simply there once it was PUT."""
        type, word, billable = KINDS[kind]
        if operation.startswith("list"):
            return self.listing(
                request,
                [self.show(r) for r in self.resources.values() if r["type"] == type and r["thing"].ended is None])
        id = self.base + type + "/" + self.place["name"]
        there = self.live(id)
        if operation.startswith("put"):
            return self.put(kind, type, word, billable, id, there, request)
        if operation.startswith("get"):
            if not there:
                raise Refusal(404, "ResourceNotFound", f"The Resource '{type}/{self.place['name']}' was not found.")
            return Reply(200, self.show(there))
        if operation.startswith("delete"):
            return self.remove(kind, there)
        raise Refusal(405, "MethodNotAllowed", f"{operation} is not known here.")

    def put(self, kind, type, word, billable, id, there, request):
        p = request.json()
        if p is None or not p.get(
                "location") or set(p) - {"location", "tags", "properties", "sku", "zones", "extendedLocation"}:
            raise Refusal(400, "InvalidRequestFormat", "Cannot parse the request.")
        properties, addresses = p.get("properties") or {}, []
        if kind == "NetworkInterface":
            addresses = self.interface(properties)
            inside = [dict(c, properties=dict(c["properties"], privateIPAddress="10.0.0.4"))
                      for c in properties["ipConfigurations"]]
            properties = dict(properties, ipConfigurations=inside)
        if kind == "NetworkSecurityGroup":
            self.check_rules(properties)
        if kind == "Disk":
            self.check_disk(p)
        if kind == "PublicIPAddress":
            if (p.get("sku") or
                {}).get("name") == "Standard" and properties.get("publicIPAllocationMethod") != "Static":
                raise Refusal(400, "PublicIPAllocationMethodMismatch",
                              "Standard sku publicIp must have AllocationMethod set to "
                              "Static.")
            properties = dict(properties, ipAddress="127.0.0.1")
        thing = there["thing"] if there else self.world.attach(
            word, id, p.get("tags") or {}, None, False, billable, size=properties.get("diskSizeGB", 0))
        machine = there.get("machine") if there else None
        made = self.store(type, self.place["name"], p["location"], p.get("tags") or {}, properties, thing)
        made["addresses"], made["machine"] = addresses, machine
        made["kind"], made["zones"] = (p.get("sku") or {}).get("name"), p.get("zones")
        return self.operation_reply(200 if there else 201, "plain", None, p["location"], self.show(made))

    def check_rules(self, properties):
        taken = set()
        for rule in properties.get("securityRules") or []:
            flat, q = flatten(rule), rule.get("properties") or {}
            wrong = RULE.unknown(flat) or RULE.missing(flat)
            from_them = [q["sourceAddressPrefix"]] if q.get("sourceAddressPrefix") else q.get("sourceAddressPrefixes")
            if wrong or not from_them or "sourceAddressPrefix" in q and "sourceAddressPrefixes" in q:
                raise Refusal(400, "SecurityRuleInvalid", f"Security rule is invalid: {wrong or 'source addresses'}.")
            if not all(RANGE.fullmatch(one) for one in from_them):
                raise Refusal(400, "SecurityRuleInvalidAddressPrefix", f"{from_them} has an invalid address prefix.")
            if q["protocol"] not in ("Tcp", "Udp", "Icmp", "*") or q["access"] not in ("Allow", "Deny") or \
                    q["direction"] not in ("Inbound", "Outbound"):
                raise Refusal(400, "SecurityRuleInvalid", "Security rule has an invalid word.")
            if type(q["priority"]) is not int or not 100 <= q["priority"] <= 4096:
                raise Refusal(400, "SecurityRuleInvalidPriority", "Priority is from 100 to 4096.")
            if (q["direction"], q["priority"]) in taken:
                raise Refusal(400, "SecurityRuleConflict", "Two rules have the same priority and direction.")
            taken.add((q["direction"], q["priority"]))

    def interface(self, properties):
        """The addresses of an interface whose subnet and group are there."""
        found = []
        group = (properties.get("networkSecurityGroup") or {}).get("id")
        if not properties.get("ipConfigurations"):
            raise Refusal(400, "NetworkInterfaceMustHaveAtLeastOneIpConfiguration", "It has no IP configuration.")
        if group and not self.live(group):
            raise Refusal(400, "InvalidResourceReference", f"Resource {group} was not found.")
        for c in properties["ipConfigurations"]:
            subnet = ((c.get("properties") or {}).get("subnet") or {}).get("id", "")
            if not self.live(subnet.partition("/subnets/")[0]):
                raise Refusal(400, "InvalidResourceReference", f"Resource {subnet} was not found.")
            address = (c["properties"].get("publicIPAddress") or {})
            if address:
                if not self.live(address.get("id", "")):
                    raise Refusal(400, "InvalidResourceReference", f"Resource {address.get('id')} was not found.")
                delete = (address.get("properties") or {}).get("deleteOption") == "Delete"
                found.append(dict(id=address["id"], delete=delete))
        return found

    def remove(self, kind, there):
        if not there:
            return Reply(204)
        machine = there["thing"].machine and self.vm(there["thing"].machine)
        if machine and machine.phase != "gone":
            code = {
                "NetworkInterface": "NicInUse", "Disk": "OperationNotAllowed",
                "PublicIPAddress": "PublicIPAddressCannotBeDeleted"
            }.get(kind, "InUse")
            raise Refusal(409 if kind == "Disk" else 400, code, f"{there['id']} is used by {machine.name}.")
        if there.get("reserved", 0) > self.world.now():
            raise Refusal(400, "NicReservedForAnotherVm",
                          "Nic(s) in request is reserved for another Virtual Machine for 180 seconds.")
        if kind == "PublicIPAddress" and any(there["id"].lower() == a["id"].lower()
                                             for r in self.resources.values() if r["thing"].ended is None
                                             for a in r["addresses"]):
            raise Refusal(400, "PublicIPAddressCannotBeDeleted", f"{there['id']} is still allocated to an interface.")
        if kind == "NetworkSecurityGroup" and any(
                (r["properties"].get("networkSecurityGroup") or {}).get("id", "").lower() == there["id"].lower()
                for r in self.resources.values() if r["thing"].ended is None):
            raise Refusal(400, "InUseNetworkSecurityGroupCannotBeDeleted",
                          f"Network security group {there['id']} cannot be deleted because it is in use.")
        there["thing"].ended = self.world.now()
        return self.operation_reply(202, "plain", None, there["location"])

    # Lists.

    def listing(self, request, rows, most=1000, key="value", link="nextLink"):
        top = request.arg("$top", "0")
        cursor = request.arg("$skiptoken")
        rows, more = self.page(rows, cursor, int(top), most,
                               Refusal(400, "InvalidSkipToken", "The skip token is invalid."))
        body = {key: rows}
        if more:
            query = [(k, v) for k, v in request.query if k != "$skiptoken"] + [("$skiptoken", more)]
            body[link] = f"{self.url}{request.path}?" + urllib.parse.urlencode(query)
        return Reply(200, body, headers={"x-ms-ratelimit-remaining-subscription-reads": "249"})

    def filter(self, request, known):
        """$filter as {field: value}; only `eq` joined by `and`."""
        text = request.arg("$filter", "")
        found = {}
        for part in filter(None, re.split(r"\s+and\s+", text.strip())):
            one = re.fullmatch(r"(\w+) eq '([^']*)'", part.strip())
            if not one or one[1] not in known:
                raise Refusal(400, "InvalidFilterInQueryString",
                              f"Invalid $filter '{text}' specified in the query string.")
            found[one[1]] = one[2]
        return found

    def do_listResources(self, request):
        f = self.filter(request, ("tagName", "tagValue", "resourceType", "location", "resourceGroup"))
        rows = [
            dict(self.view(m), properties={}) for m in self.world.machines.values() if m.phase != "gone" and m.listed()
        ]
        rows += [self.show(r) for r in self.resources.values() if r["thing"].ended is None]
        rows = [{k: r[k] for k in ("id", "name", "type", "location", "tags")} for r in rows
                if ("tagName" not in f or r["tags"].get(f["tagName"]) is not None) and
                ("tagValue" not in f or r["tags"].get(f.get("tagName")) == f["tagValue"]) and
                f.get("resourceType", r["type"]).lower() == r["type"].lower()]
        if "tagName" in f:  # "the tags for each resource are not returned in the results"
            rows = [{k: v for k, v in r.items() if k != "tags"} for r in rows]
        return self.listing(request, rows)

    def do_subscription(self, request):
        return Reply(
            200,
            dict(id=f"/subscriptions/{self.subscription}", subscriptionId=self.subscription, state="Enabled",
                 tenantId=self.tenant, displayName="fake"))

    def do_getResourceGroup(self, request):
        name = self.place["group"]
        if name.lower() not in self.groups:
            raise Refusal(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
        return Reply(200, self.group_view(name))

    def group_view(self, name):
        g = self.groups[name.lower()]
        return dict(id=f"/subscriptions/{self.subscription}/resourceGroups/{name}", name=name, location=g["location"],
                    tags=g["tags"], properties=dict(provisioningState="Succeeded"))

    def do_putResourceGroup(self, request):
        p, name = request.json() or {}, self.place["group"]
        if p.get("location") not in self.REGIONS:
            raise Refusal(400, "LocationRequired", "The location property is required for this definition.")
        new = name.lower() not in self.groups
        self.groups[name.lower()] = dict(location=p["location"], tags=p.get("tags") or {})
        return Reply(201 if new else 200, self.group_view(name))

    def resource_graph(self, request):
        """Of its tables that of spot prices alone; of Kusto what asks for some sizes in one location."""
        p = request.json() or {}
        bad = lambda why: Refusal(400, "BadRequest", why)
        if request.arg("api-version") != "2021-03-01" or p.get("subscriptions") != [self.subscription]:
            raise bad("Please provide valid subscriptions, and the api-version.")
        asked = re.fullmatch(
            r"SpotResources \| where type =~ 'microsoft[.]compute/skuspotpricehistory/ostype/location' "
            r"\| where sku[.]name in~ \(('[\w-]+'(?:, '[\w-]+')*)\) \| where properties[.]osType =~ 'linux' "
            r"\| where location =~ '(\w+)' \| project sku = tostring\(sku[.]name\), "
            r"prices = properties[.]spotPrices", p.get("query", ""))
        options = p.get("options") or {}
        unknown = set(options) - {
            "resultFormat", "$skipToken", "$skip", "$top", "allowPartialScopes", "authorizationScopeFilter"
        }
        if unknown:
            raise bad(f"The options {sorted(unknown)} are not known.")
        if not asked or options.get("resultFormat") != "objectArray":
            raise bad("Query is invalid. Please refer to the documentation for the Azure Resource Graph service.")
        names, region, now = {n.strip("' ").lower() for n in asked[1].split(",")}, asked[2], self.world.now()
        rows = []
        for t in self.types.values():
            if t.name.lower() in names and region in t.facts.get("zones", [region]) and t.spot is not None:
                hours = [now - 3600 * n for n in range(1, 72)]
                rows.append(
                    dict(sku=t.name.lower(), prices=[
                        dict(priceUSD=self.spot_then(t.name, region, at, 1 + 0.1 * math.sin(n)) / 1e6,
                             effectiveDate=stamp(at))
                        for n, at in enumerate(self.spot_instants(t.name, hours, now - 72 * 3600, now))
                    ]))
        first, size = int(options.get("$skipToken", "0")), 1
        more = {"$skipToken": str(first + size)} if first + size < len(rows) or self.endless else {}
        return Reply(200, dict(totalRecords=len(rows), count=len(rows[first:first + size]),
                               data=rows[first:first + size], resultTruncated="false", **more))

    def do_listSkus(self, request):
        f = self.filter(request, ("location", ))
        rows = []
        for region in self.REGIONS:
            for t in self.types.values():
                if f.get("location", region) == region and region in t.facts.get("zones", [region]):
                    capabilities = dict(vCPUs=t.vcpus, MemoryGB=t.memory_gib, GPUs=t.count, LowPriorityCapable="True",
                                        HyperVGenerations="V1,V2", CpuArchitectureType="x64", PremiumIO="True",
                                        RdmaEnabled=str("r_" in t.name),
                                        MaxResourceVolumeMB="0" if not t.count else "65536",
                                        NvmeDiskSizeInMiB=915527 if t.gpu_gib > 40 else 0)
                    capabilities.update(t.facts.get("told", {}))
                    rows.append(
                        dict(resourceType="virtualMachines", name=t.name, tier="Standard", family=t.facts["family"],
                             size=t.name[9:], locations=[region],
                             locationInfo=[dict(location=region, zones=t.facts.get("numbers", ["1", "2"]))],
                             restrictions=[],
                             capabilities=[dict(name=k, value=str(v)) for k, v in capabilities.items() if v]))
        return self.listing(request, rows)

    def do_listUsages(self, request):
        rows = [
            dict(unit="Count", currentValue=len(self.world.alive()),
                 limit=100 if self.world.quota is None else self.world.quota, name=dict(value=n, localizedValue=n))
            for n in ["cores", "lowPriorityCores", *sorted({t.facts["family"] for t in self.types.values()})]
        ]
        return self.listing(request, rows)

    def retail_prices(self, request):
        f = self.filter(request, ("serviceName", "armRegionName", "armSkuName", "priceType", "currencyCode", "skuName"))
        rows = []
        for region in self.REGIONS:
            for t in self.types.values():
                short = t.name.removeprefix("Standard_").replace("_", " ")
                for name, price in ((short, t.on_demand), (short + " Spot", t.spot)):
                    for product in ("Virtual Machines", "Virtual Machines Windows"):
                        if price is None or region not in t.facts.get("zones", [region]):
                            continue
                        dear = int(price * self.REGIONS[region] * (1 if product == "Virtual Machines" else 1.3)) / 1e6
                        rows.append(
                            dict(currencyCode="USD", retailPrice=dear, unitPrice=dear, armRegionName=region,
                                 armSkuName=t.name, skuName=name, meterName=name, productName=product + " " + short,
                                 serviceName="Virtual Machines", unitOfMeasure="1 Hour", type="Consumption",
                                 isPrimaryMeterRegion=True, tierMinimumUnits=0.0))
            for t in self.types.values():  # a reservation's unit is an hour, says Azure; its price is the whole term's
                short = t.name.removeprefix("Standard_").replace("_", " ")
                for years, share in RESERVED.items() if region in t.facts.get("zones", [region]) else ():
                    full = int(t.on_demand * self.REGIONS[region]) / 1e6 * share * YEAR_H * years
                    rows.append(
                        dict(currencyCode="USD", retailPrice=full, unitPrice=full, armRegionName=region,
                             armSkuName=t.name, skuName=short, meterName=short, productName="Virtual Machines " + short,
                             serviceName="Virtual Machines", unitOfMeasure="1 Hour", type="Reservation",
                             reservationTerm="1 Year" if years == 1 else f"{years} Years", isPrimaryMeterRegion=True,
                             tierMinimumUnits=0.0))
                    rows.append(dict(rows[-1], type="DevTestConsumption", retailPrice=0.01, unitPrice=0.01))
        rows = [r for r in rows if all(r["type" if k == "priceType" else k] == v for k, v in f.items())]
        reply = self.listing(request, rows, 1000, "Items", "NextPageLink")
        return reply
