"""A client of lambda.py."""
import base64, json

from clients import ApiError, Client

PHASES = {
    "booting": "starting", "active": "running", "terminating": "ending", "terminated": "gone", "preempted": "gone",
    "unhealthy": "failed"
}


class Lambda(Client):
    name, token, type, other, spot, paged = "lambda", False, "gpu_1x_a10", "gpu_1x_h100_pcie", False, False
    CODES = dict(capacity="instance-operations/launch/insufficient-capacity", quota="global/quota-exceeded",
                 throttle="global/too-many-requests", error="global/internal-error", auth="global/invalid-api-key",
                 signature="global/invalid-api-key", unknown="global/invalid-parameters",
                 missing="global/invalid-parameters")
    create_operation, list_operation = "launchInstance", "listInstances"
    required, unknown = "region_name", {"quantity": 1}

    def call(self, method, path, body=None, authorization=None):
        status, got, text = self.fake.send(
            method, "/api/v1" + path, {
                "Authorization": authorization or "Bearer " + self.credentials["LAMBDA_API_KEY"],
                "Content-Type": "application/json"
            }, b"" if body is None else json.dumps(body).encode())
        value = json.loads(text)
        if status >= 300:
            raise ApiError(status, value["error"]["code"], got, value["error"]["message"])
        return value["data"]

    def create(self, token="", tag="", type=None, spot=False, cap=None, drop=None, **more):
        p = dict(region_name="us-west-1", instance_type_name=type or self.type,
                 ssh_key_names=[self.fake.settings["ssh_key"]], tags=[])
        p.update(more, **({"tags": [dict(key="rille-lease", value=tag)]} if tag else {}))
        p.pop(drop, None)
        return self.call("POST", "/instance-operations/launch", p)["instance_ids"][0]

    def describe(self, id):
        try:
            return PHASES[self.call("GET", "/instances/" + id)["status"]]
        except ApiError as e:
            if e.code == "global/object-does-not-exist":
                return "gone"
            raise

    def list(self, tag):
        return [i["id"] for i in self.call("GET", "/instances") if dict(key="rille-lease", value=tag) in i["tags"]]

    def terminate(self, id):
        self.call("POST", "/instance-operations/terminate", dict(instance_ids=[id]))

    def special(self, t):
        types = self.call("GET", "/instance-types")
        t.equal(types["gpu_8x_h100_sxm5"]["instance_type"]["price_cents_per_hour"], 2392)
        t.fake.control("set", stock={self.type + "@us-west-1": 0})
        places = self.call("GET", "/instance-types")[self.type]["regions_with_capacity_available"]
        t.equal([r["name"] for r in places], ["us-east-1", "europe-central-1"])
        t.code("instance-operations/launch/insufficient-capacity", lambda: self.create())
        basic = base64.b64encode(self.credentials["LAMBDA_API_KEY"].encode() + b":").decode()
        t.equal(self.call("GET", "/instances", authorization="Basic " + basic), [])
        t.code("global/invalid-parameters", lambda: self.create(ssh_key_names=["a", "b"]))
        t.code("global/not-found", lambda: self.call("GET", "/nothing"))
        t.turn(13)
        t.fake.control("set", launch_interval=12)
        id = self.create(type=self.other, name="n")
        t.code("global/too-many-requests", lambda: self.create(type=self.other))
        t.turn(13)
        self.create(type=self.other)
        t.equal(self.call("POST", "/instances/" + id, dict(name="other"))["name"], "other")
        t.fake.control("reclaim", id=id, in_seconds=5)
        t.turn(5)
        t.equal(self.call("GET", "/instances/" + id)["status"], "preempted")
        key = self.call("POST", "/ssh-keys", dict(name="mine", public_key="ssh-rsa AAAA"))
        t.code("global/duplicate", lambda: self.call("POST", "/ssh-keys", dict(name="mine", public_key="ssh-rsa AAAA")))
        self.call("DELETE", "/ssh-keys/" + key["id"])
