"""A client of gcp.py. A machine's name is made from its token, which is its requestId, too."""
import http.client, json, threading, time, urllib.parse, uuid

import rsa_key, signatures
from clients import ApiError, Client
from world import stamp

PHASES = {
    "PROVISIONING": "starting", "STAGING": "starting", "RUNNING": "running", "STOPPING": "ending",
    "TERMINATED": "stopped"
}


class Gcp(Client):
    name, type, other, mismatch, lagging = "gcp", "g2-standard-4", "a2-highgpu-1g", "", "list"
    CODES = dict(capacity="ZONE_RESOURCE_POOL_EXHAUSTED", quota="quotaExceeded", throttle="rateLimitExceeded",
                 error="backendError", auth="authError", signature="invalid_grant", skew="invalid_grant",
                 unknown="invalid", missing="invalid")
    create_operation, list_operation = "insertInstance", "aggregatedInstances"
    required, unknown = "disks", {"bogus": 1}
    made, bearer, keys = 0, None, {}

    def __init__(self, fake, **credentials):
        super().__init__(fake, **credentials)
        with open(fake.settings["credentials"]) as f:
            self.file = json.load(f)

    def secret_names(self):
        self.file["private_key"] = rsa_key.RsaKey("another").pem
        return []

    def renew(self):
        self.bearer = None

    def login(self):
        now = int(time.time() + self.shift)
        parts = [
            signatures.base64url(json.dumps(p).encode())
            for p in (dict(alg="RS256", typ="JWT", kid=self.file["private_key_id"]),
                      dict(iss=self.file["client_email"], scope="https://www.googleapis.com/auth/cloud-platform",
                           aud=self.file["token_uri"], iat=now, exp=now + 3600))
        ]
        signature = signatures.rs256_sign(".".join(parts).encode(), *rsa_key.numbers_of(self.file["private_key"]))
        form = dict(grant_type="urn:ietf:params:oauth:grant-type:jwt-bearer",
                    assertion=".".join(parts) + "." + signatures.base64url(signature))
        status, got, text = self.fake.send("POST", "/token", {"Content-Type": "application/x-www-form-urlencoded"},
                                           urllib.parse.urlencode(form).encode())
        value = json.loads(text)
        if status != 200:
            raise ApiError(status, value["error"], got, value["error_description"])
        self.bearer = value["access_token"]

    def call(self, method, path, body=None):
        if not self.bearer:
            self.login()
        if not path.startswith("/v1/"):
            path = f"/compute/v1/projects/{self.fake.settings['project']}{path}"
        status, got, text = self.fake.send(
            method, path, {"Authorization": "Bearer " + self.bearer, "Content-Type": "application/json"},
            b"" if body is None else json.dumps(body).encode())
        value = json.loads(text)
        if status >= 300:
            raise ApiError(status, value["error"]["errors"][0]["reason"], got, value["error"]["message"])
        return value

    def sent(self, token):
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, token))

    def insert(self, token="", tag="", type=None, spot=False, cap=None, drop=None, **more):
        Gcp.made += 1
        name, zone = token or f"vm-{Gcp.made}", self.fake.settings["zone"]
        p = dict(
            dict(
                name=name, machineType=f"zones/{zone}/machineTypes/{type or self.type}", networkInterfaces=[
                    dict(network="global/networks/default", accessConfigs=[dict(type="ONE_TO_ONE_NAT")])
                ], disks=[
                    dict(boot=True, autoDelete=True,
                         initializeParams=dict(sourceImage=self.fake.settings["image"],
                                               diskType=f"zones/{zone}/diskTypes/pd-balanced"))
                ], scheduling=dict(onHostMaintenance="TERMINATE", automaticRestart=False),
                labels={"rille-lease": tag} if tag else {}), **more)
        if spot:
            p["scheduling"].update(provisioningModel="SPOT", instanceTerminationAction="DELETE")
        p.pop(drop, None)
        return name, self.call("POST", f"/zones/{zone}/instances?requestId={self.sent(name)}", p)

    def create(self, **request):
        return self.insert(**request)[0]

    def order(self, **request):
        name, operation = self.insert(**request)
        self.fake.control("advance", seconds=1)
        told = self.call("GET", f"/zones/us-central1-a/operations/{operation['name']}")
        if told.get("error"):
            raise ApiError(told["httpErrorStatusCode"], told["error"]["errors"][0]["code"], {})
        return name

    def describe(self, name):
        try:
            return PHASES[self.call("GET", f"/zones/us-central1-a/instances/{name}")["status"]]
        except ApiError as e:
            if e.code == "notFound":
                return "gone"
            raise

    def list(self, tag):
        names, more = [], ""
        while True:
            got = self.call(
                "GET", f"/aggregated/instances?filter=labels.rille-lease%3D{tag}" +
                (f"&pageToken={urllib.parse.quote(more)}" if more else ""))
            names += [i["name"] for scope in got["items"].values() for i in scope.get("instances", [])]
            more = got.get("nextPageToken")
            if not more:
                return names

    def terminate(self, name):
        self.call("DELETE", f"/zones/us-central1-a/instances/{name}")

    def price(self):
        """g2-standard-4 as spot: four cores, 16 GiB and one L4."""
        rows = self.call("GET", "/v1/services/6F81-5844-456A/skus?currencyCode=USD&pageSize=5000")["skus"]
        total = 0
        for text, count in (("G2 Instance Core", 4), ("G2 Instance Ram", 16), ("Nvidia L4 GPU", 1)):
            row = next(r for r in rows if text in r["description"] and r["category"]["usageType"] == "Preemptible" and
                       r["serviceRegions"] == ["us-central1"])
            price = row["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]
            total += count * (int(price["units"]) * 10**6 + price["nanos"] // 1000)
        return total

    def notice(self, id):
        status, _, text = self.fake.send("GET", f"/_metadata/{id}/computeMetadata/v1/instance/preempted",
                                         {"Metadata-Flavor": "Google"})
        return text == b"TRUE" or None

    def special(self, t):
        zone = "/zones/us-central1-a"
        name, first = self.insert(token="vm-a", tag="x")
        t.code(
            "alreadyExists", lambda: self.call(
                "POST", zone + "/instances",
                dict(name=name, machineType="zones/us-central1-a/machineTypes/e2-standard-2", networkInterfaces=[{}],
                     disks=[dict(boot=True, initializeParams=dict(sourceImage="x"))])))
        t.equal(self.insert(token="vm-a", tag="other")[1]["name"], first["name"])
        t.code("invalid", lambda: self.call("POST", zone + "/instances?requestId=x", {}))
        t.code("invalid", lambda: self.create(labels={"Upper": "x"}))
        t.code("invalid", lambda: self.create(scheduling={}))
        old = [dict(boot=True, initializeParams=dict(sourceImage="x", diskType=f"{zone}/diskTypes/pd-balanced"))]
        t.code("invalid", lambda: self.create(type="c4-standard-4", disks=old, scheduling={}))
        params = dict(sourceImage="x", diskType=f"{zone}/diskTypes/hyperdisk-balanced")
        new = [dict(boot=True, autoDelete=True, initializeParams=params)]
        t.code("invalid", lambda: self.create(disks=new))
        self.terminate(self.create(type="c4-standard-4", disks=new, scheduling={}))
        stays = dict(onHostMaintenance="TERMINATE", automaticRestart=False)
        moves = dict(stays, onHostMaintenance="MIGRATE")
        t.code("invalid", lambda: self.create(scheduling=moves))
        t.code("invalid", lambda: self.create(type="e2-standard-2", scheduling=stays))
        t.code("invalid", lambda: self.create(type="e2-standard-2", scheduling=dict(moves, provisioningModel="SPOT")))
        for how in (moves, dict(stays, provisioningModel="SPOT")):
            self.terminate(self.create(type="e2-standard-2", scheduling=how))
        t.code("notFound", lambda: self.call("GET", "/zones/us-central1-a/instances/none"))
        t.turn(5)
        self.call("POST", f"{zone}/instances/{name}/stop")
        t.turn(5)
        self.call("POST", f"{zone}/instances/{name}/setMachineType",
                  dict(machineType="zones/us-central1-a/machineTypes/a2-highgpu-1g"))
        t.equal((self.describe(name), t.machine(name)["type"]), ("stopped", "a2-highgpu-1g"))
        operation = self.call("DELETE", f"{zone}/instances/{name}")
        t.equal(operation["status"], "RUNNING")
        t.turn(5)
        t.equal(self.call("POST", f"{zone}/operations/{operation['name']}/wait")["status"], "DONE")
        gpus = dict(guestAccelerators=[
            dict(acceleratorType="zones/us-central1-a/acceleratorTypes/nvidia-tesla-t4", acceleratorCount=2)
        ])
        id = self.create(type="n1-standard-4", tag="t4", **gpus)
        t.equal(t.machine(id)["type"], "n1-standard-4+nvidia-tesla-t4:2")
        self.terminate(id)
        id = self.create(
            tag="short", scheduling=dict(onHostMaintenance="TERMINATE", automaticRestart=False,
                                         instanceTerminationAction="DELETE", maxRunDuration=dict(seconds="600")))
        t.turn(590)
        t.equal(self.describe(id), "running")
        t.turn(20)
        t.equal((self.describe(id), t.machine(id)["reason"]), ("gone", "expired"))
        at = stamp(t.wall() + 600)
        id = self.create(
            tag="until", scheduling=dict(onHostMaintenance="TERMINATE", automaticRestart=False,
                                         instanceTerminationAction="DELETE", terminationTime=at))
        t.turn(590)
        t.equal(self.describe(id), "running")
        t.turn(20)
        t.equal((self.describe(id), t.machine(id)["reason"]), ("gone", "expired"))
        id = self.create(
            tag="spot", scheduling=dict(onHostMaintenance="TERMINATE", automaticRestart=False,
                                        provisioningModel="SPOT"))
        t.turn(5)
        answers = []

        def hang():
            connection = http.client.HTTPConnection("127.0.0.1", t.fake.port, timeout=20)
            connection.request("GET", f"/_metadata/{id}/computeMetadata/v1/instance/preempted?wait_for_change=true",
                               headers={"Metadata-Flavor": "Google"})
            answers.append(connection.getresponse().read())
            connection.close()

        waiter = threading.Thread(target=hang)
        waiter.start()
        t.fake.control("reclaim", id=id, in_seconds=30)
        waiter.join()
        t.equal(answers, [b"TRUE"])
        t.turn(40)
        t.equal(self.describe(id), "stopped")
        found = self.call("GET", "/aggregated/operations?filter=operationType%3Dcompute.instances.preempted")
        t.equal(found["items"]["zones/us-central1-a"]["operations"][0]["targetLink"].endswith("/" + id), True)
        self.terminate(id)
        t.code("invalid", lambda: self.create(disks=[dict(boot=True, initializeParams=dict(sourceImage="x"))]))
        id = self.create(disks=[dict(boot=True, autoDelete=False, initializeParams=old[0]["initializeParams"])])
        self.terminate(id)
        t.turn(5)
        t.equal(t.fake.state()["alive"], 1)
        self.call("DELETE", f"{zone}/disks/{id}")
        t.equal(t.fake.state()["alive"], 0)
        self.volumes(t)
        t.equal(len(self.call("GET", "/aggregated/acceleratorTypes")["items"]), 4)
        t.equal(self.call("GET", "")["quotas"][0]["metric"], "GPUS_ALL_REGIONS")

    def volumes(self, t):
        zone = "/zones/us-central1-a"
        asked = dict(name="data", sizeGb="10", type=zone[1:] + "/diskTypes/pd-standard",
                     labels={"rille-lease": "volume"})
        once = f"{zone}/disks?requestId={self.sent('data')}"
        first = self.call("POST", once, asked)
        t.equal((first["status"], self.call("GET", zone + "/disks/data")["status"]), ("RUNNING", "CREATING"))
        t.equal(self.call("POST", once, asked)["name"], first["name"])
        t.code("alreadyExists", lambda: self.call("POST", zone + "/disks", asked))
        for wrong in (dict(name="Upper"), dict(sizeGb="9"), dict(type=zone[1:] + "/diskTypes/floppy"), dict(bogus=1)):
            t.code("invalid", lambda: self.call("POST", zone + "/disks", dict(asked, **dict(dict(name="x"), **wrong))))
        ids = [self.create(type=type, tag="volume") for type in ("a2-highgpu-1g", "a2-highgpu-1g", "g2-standard-4")]
        attach = lambda to, **more: self.call("POST", f"{zone}/instances/{to}/attachDisk",
                                              dict(dict(source=zone[1:] + "/disks/data", deviceName="d"), **more))
        t.code("resourceNotReady", lambda: attach(ids[0]))
        t.turn(5)
        t.code("notFound", lambda: attach(ids[0], source=zone[1:] + "/disks/none"))
        t.code("invalid", lambda: attach(ids[0], source="zones/us-central1-b/disks/data"))
        t.code("invalid", lambda: attach(ids[0], deviceName="persistent-disk-0"))
        t.code("badRequest", lambda: attach(ids[2]))  # G2 takes no pd-standard
        t.equal("error" in attach(ids[0]), False)
        t.equal(attach(ids[1])["error"]["errors"][0]["code"], "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE")
        there = [(d["boot"], d["deviceName"]) for d in self.call("GET", f"{zone}/instances/{ids[0]}")["disks"]]
        t.equal(sorted(there), [(False, "d"), (True, "persistent-disk-0")])
        t.equal(self.call("GET", zone + "/disks/data")["users"][0].rpartition("/")[2], ids[0])
        t.code("resourceInUseByAnotherResource", lambda: self.call("DELETE", zone + "/disks/data"))
        for id in ids:
            self.terminate(id)
        t.turn(5)
        t.equal(t.fake.state()["alive"], 1)  # the volume has outlived them
        self.call("DELETE", zone + "/disks/data")
        t.code("notFound", lambda: self.call("GET", zone + "/disks/data"))
        t.equal(t.fake.state()["alive"], 0)
