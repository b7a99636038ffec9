#!/usr/bin/env python3
"""Azure: the OAuth token endpoint, Resource Manager with its asynchronous operations, the retail prices, on one port.
Here: tokens and paths; azure_compute.py has virtual machines, azure_disks.py disks, azure_more.py network, catalogue
and prices, azure_roles.py credentials without secrets. A machine's name is its key: PUT again makes no second one.
Allocation fails late, in the operation's result. Not here: interfaces made with the machine, scale sets.
"""
import re

from azure_compute import Compute
from azure_disks import Disks
from azure_more import IMAGE, More
from azure_roles import Roles
from base import Fake, Refusal, Reply, main
from world import Type

PATH = re.compile(
    r"/subscriptions/(?P<sub>[^/]+)(?:/resourcegroups/(?P<group>[^/]+))?(?:/providers/(?P<type>[^/]+/[^/]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<action>[^/]+)(?:/(?P<below>[^/]+))?)?)?(?:/(?P<all>resources))?/?", re.I)
NAMES = {
    "microsoft.compute/virtualmachines": "VirtualMachine", "microsoft.compute/disks": "Disk",
    "microsoft.compute/skus": "Sku", "microsoft.compute/locations": "Location",
    "microsoft.network/locations": "Location", "microsoft.network/networkinterfaces": "NetworkInterface",
    "microsoft.network/publicipaddresses": "PublicIPAddress", "microsoft.network/virtualnetworks": "VirtualNetwork",
    "microsoft.network/networksecuritygroups": "NetworkSecurityGroup"
}


class Azure(Compute, Disks, More, Roles, Fake):
    name, notice, end = "azure", 30.0, 1.0
    billing = dict(unit_s=1, minimum_s=0, from_live=True, until="gone")
    ENDS, disk_price, address_price = "deleteVirtualMachine", 0.12, 0.005
    CREATES, LATE = ("putVirtualMachine", ), ("capacity", )
    REGIONS = {"eastus": 1.0, "westus3": 1.0, "westeurope": 1.2}
    TYPES = [
        Type("Standard_NC4as_T4_v3", "T4", 1, 16, 4, 28, 526_000, 210_400, family="standardNCASv3_T4Family"),
        Type("Standard_NV36ads_A10_v5", "A10", 1, 24, 36, 440, 3_200_000, 640_000, family="StandardNVADSA10v5Family"),
        Type("Standard_NV72ads_A10_v5", "A10", 2, 24, 72, 880, 6_520_000, 1_304_000, family="StandardNVADSA10v5Family"),
        Type("Standard_NC24ads_A100_v4", "A100", 1, 80, 24, 220, 3_673_000, 734_600,
             family="StandardNCADSA100v4Family"),
        Type("Standard_NC48ads_A100_v4", "A100", 2, 80, 48, 440, 7_346_000, 1_469_200,
             family="StandardNCADSA100v4Family"),
        Type("Standard_NC40ads_H100_v5", "H100", 1, 94, 40, 320, 6_980_000, 2_443_000,
             family="StandardNCadsH100v5Family"),
        Type("Standard_ND96isr_H100_v5", "H100", 8, 80, 96, 1900, 98_320_000, 39_328_000,
             family="standardNDSH100v5Family", zones=["eastus"]),
        Type("Standard_D2s_v5", "", 0, 0, 2, 8, 96_000, 19_200, family="standardDSv5Family"),
        Type("Standard_D2s_v4", "", 0, 0, 2, 8, 97_000, 19_400, family="standardDSv4Family", numbers=["2"]),
        Type("Standard_D2ps_v5", "", 0, 0, 2, 8, 77_000, 15_400, family="standardDPSv5Family", told=dict(
            CpuArchitectureType="Arm64", HyperVGenerations="V2")),
        Type("Standard_D2_v5", "", 0, 0, 2, 8, 90_000, 18_000, family="standardDv5Family",
             told=dict(PremiumIO="False")),
        Type("Standard_DS2", "", 0, 0, 2, 7, 120_000, 24_000, family="standardDSFamily",
             told=dict(HyperVGenerations="V1"))
    ]
    REFUSALS = {
        "malformed": Refusal(400, "InvalidParameter"),
        "capacity": Refusal(
            200, "AllocationFailed", "Allocation failed. We do not have sufficient capacity for the requested "
            "VM size in this region."),
        "quota": Refusal(
            409, "OperationNotAllowed", "Operation could not be completed as it results in exceeding approved "
            "Total Regional Cores quota."),
        "throttle": Refusal(429, "TooManyRequests", "The request is being throttled as the limit has been reached.",
                            {"Retry-After": "1"}),
        "error": Refusal(500, "InternalServerError",
                         "The server encountered an internal error. Please retry the request."),
        "auth": Refusal(401, "ExpiredAuthenticationToken",
                        "The access token expiry time is earlier than current time."),
        "spot_price": Refusal(409, "SpotPriceGreaterThanProvidedMaxPrice",
                              "The current spot price is higher than maxPrice."),
    }

    NEEDS = {
        "subscription": "Microsoft.Resources/subscriptions/read",
        "listResources": "Microsoft.Resources/subscriptions/resources/read",
        "listSkus": "Microsoft.Compute/skus/read", "listUsages": "Microsoft.Compute/locations/usages/read",
        "deallocate": "Microsoft.Compute/virtualMachines/deallocate/action",
        "start": "Microsoft.Compute/virtualMachines/start/action",
        "attachDetachDataDisks": "Microsoft.Compute/virtualMachines/attachDetachDataDisks/action "
        "Microsoft.Compute/disks/write",
        "putVirtualMachine": "Microsoft.Compute/disks/write Microsoft.Network/networkInterfaces/join/action",
        "putNetworkInterface": "Microsoft.Network/virtualNetworks/subnets/join/action "
        "Microsoft.Network/networkSecurityGroups/join/action Microsoft.Network/publicIPAddresses/join/action"
    }

    def needs(self, operation, parameters):
        """A resource's verb is read, write or delete; what it refers to has to be joined."""
        type = (self.place["type"] or "") if getattr(self, "place", None) and operation != "token" else ""
        if operation == "getOperation":
            return [type + "/operations/read"]
        verb = next((v for p, v in (("put", "write"), ("patch", "write"), ("delete", "delete"), ("get", "read"),
                                    ("list", "read")) if operation.startswith(p)), None)
        own = [f"{type}/{verb}"] if verb and self.place["group"] and type else []
        return own + super().needs(operation, parameters)

    def prepare(self):
        self.tenant, self.client, self.subscription = (self.world.uuid() for _ in range(3))
        self.secret = self.world.word(3) + "8Q~" + self.world.word(34, "abcdefghijkLMNOPQRSTUVWXYZ0123456789.~-")
        self.tokens, self.operations, self.world.fade = {}, {}, 0
        self.groups = {"rille": dict(location="eastus", tags={})}
        self.base = f"/subscriptions/{self.subscription}/resourceGroups/rille/providers/"
        self.resources = {}
        self.furnish_network()
        self.prepare_lending()

    def settings(self):
        return dict(
            endpoints=dict(login=self.url, management=self.url, prices=self.url, metadata=self.url + "/_metadata"),
            regions=sorted(self.REGIONS), subscription=self.subscription, resource_group="rille", image=IMAGE,
            subnet=self.base + "Microsoft.Network/virtualNetworks/rille/subnets/default",
            security_group=self.base + "Microsoft.Network/networkSecurityGroups/rille")

    def env(self):
        return dict(AZURE_TENANT_ID=self.tenant, AZURE_CLIENT_ID=self.client, AZURE_CLIENT_SECRET=self.secret,
                    AZURE_SUBSCRIPTION_ID=self.subscription)

    def secrets(self):
        return [self.secret, *self.tokens]

    def parse(self, request):
        body = request.json() if request.header("Content-Type").startswith("application/json") else dict(request.form())
        p = dict(body or {}, **({"query": dict(request.query)} if request.query else {}))
        if request.path.endswith("/oauth2/v2.0/token"):
            hidden = ("client_secret", "client_assertion")
            return "token", {k: "(secret)" if k in hidden else v for k, v in p.items()}
        if request.path.endswith("/v2.0/.well-known/openid-configuration"):
            return "discovery", p
        if request.path == "/api/retail/prices":
            return "retailPrices", p
        if request.path == "/providers/Microsoft.ResourceGraph/resources" and request.method == "POST":
            return "resourceGraph", p
        self.place = PATH.fullmatch(request.path)
        if not self.place:
            return "unknown", p
        type, action = (self.place["type"] or "").lower(), self.place["action"]
        verb = {"POST": "post", "PUT": "put", "PATCH": "patch", "DELETE": "delete"}.get(request.method, "get")
        if self.place["all"]:
            return "listResources", p
        if not type:
            return verb + "ResourceGroup" if self.place["group"] else "subscription", p
        if type.endswith("/locations"):
            return {"operations": "getOperation", "usages": "listUsages"}.get((action or "").lower(), "unknown"), p
        if verb == "get" and not self.place["name"]:
            return "list" + NAMES.get(type, type) + "s", p
        return (action if verb == "post" else verb + NAMES.get(type, type)), p

    def control(self, what, a):
        if what == "untag":
            self.resources[a["id"].lower()]["tags"].clear()
        return super().control(what, a)

    def token_of(self, parameters, request):
        return (self.place["name"] or "") if request.method == "PUT" and getattr(self, "place", None) else ""

    def verify(self, request):
        if not request.path.startswith(("/subscriptions", "/providers")):
            return
        given = request.header("Authorization")
        if not given.startswith("Bearer "):
            raise Refusal(401, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
        if given[7:] not in self.tokens:
            raise Refusal(401, "InvalidAuthenticationToken", "The access token is invalid.")
        if self.tokens[given[7:]] < self.world.wall():
            raise self.refusal("auth", {})

    def render(self, r, request):
        headers = dict(r.headers, **{"x-ms-request-id": self.request_id})
        if request.path.endswith("/oauth2/v2.0/token"):
            code = "temporarily_unavailable" if r.status >= 429 else r.code
            return Reply(r.status,
                         dict(error=code, error_description=r.message, error_codes=[7000215], trace_id=self.request_id),
                         headers=headers)
        return Reply(r.status, dict(error=dict(dict(code=r.code, message=r.message), **r.more)), headers=headers)

    def run(self, operation, p, request):
        if operation == "token":
            return self.grant(request)
        if operation == "discovery":
            return self.discovery()
        if operation == "retailPrices":
            return self.retail_prices(request)
        if operation == "resourceGraph":
            return self.resource_graph(request)
        if request.path.startswith("/subscriptions") and self.place:
            version = request.arg("api-version")
            if not version:
                raise Refusal(400, "MissingApiVersionParameter",
                              "The api-version query parameter (?api-version=) is required "
                              "for all requests.")
            if not re.fullmatch(r"20\d\d-\d\d-\d\d(-preview)?", version):
                raise Refusal(400, "InvalidApiVersionParameter", f"The api-version '{version}' is invalid.")
            if self.place["sub"].lower() != self.subscription:
                raise Refusal(404, "SubscriptionNotFound",
                              f"The subscription '{self.place['sub']}' could not be found.")
            if self.place["group"] and self.place["group"].lower(
            ) not in self.groups and "ResourceGroup" not in operation:
                raise Refusal(404, "ResourceGroupNotFound",
                              f"Resource group '{self.place['group']}' could not be found.")
            method = getattr(self, "do_" + operation, None)
            if method:
                return method(request)
            kind = next(
                (k for k in ("NetworkInterface", "PublicIPAddress", "VirtualNetwork", "NetworkSecurityGroup", "Disk")
                 if k in operation), None)
            if kind:
                return self.plain(operation, kind, request)
        raise Refusal(404, "InvalidResourceType", f"There is nothing at {request.method} {request.path}.")

    def grant(self, request):
        form = dict(request.form())
        if not request.path.startswith(f"/{self.tenant}/"):
            raise Refusal(400, "invalid_request", f"AADSTS90002: Tenant '{request.path.split('/')[1]}' not found.")
        if form.get("grant_type") != "client_credentials":
            raise Refusal(400, "unsupported_grant_type", "AADSTS70003: The app requested an unsupported grant type.")
        if form.get("scope") != "https://management.azure.com/.default":
            raise Refusal(400, "invalid_scope",
                          f"AADSTS1002012: The provided value for scope {form.get('scope')} is not valid.")
        if form.get("client_id") != self.client:
            raise Refusal(400, "unauthorized_client", "AADSTS700016: Application was not found in the directory.")
        if "client_assertion" in form:
            self.check_assertion(form, request)
        elif form.get("client_secret") != self.secret:
            raise Refusal(401, "invalid_client", "AADSTS7000215: Invalid client secret provided.")
        return self.new_token("token")


if __name__ == "__main__":
    main(Azure)
