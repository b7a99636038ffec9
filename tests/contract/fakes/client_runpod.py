"""A client of runpod.py: REST on demand, GraphQL for spot."""
import json

from clients import ApiError, Client

PHASES = {
    "PROVISIONING": "starting", "STARTING": "starting", "RUNNING": "running", "EXITED": "stopped", "ERROR": "failed",
    "TERMINATED": "ending"
}


class Runpod(Client):
    name, token, type, other = "runpod", False, "NVIDIA L4", "NVIDIA A40"
    paged, noticed, reclaimed = False, False, ("stopped", )
    CODES = dict(capacity="Bad Request", quota="Payment Required", throttle="Too Many Requests",
                 error="Internal Server Error", auth="Unauthorized", signature="Unauthorized",
                 unknown="Unprocessable Entity", missing="Unprocessable Entity", spot_price="RUNPOD")
    create_operation, list_operation = "createPod", "listPods"
    required, unknown = "image", {"imageName": "x"}

    def call(self, method, path, body=None):
        headers = {"Authorization": "Bearer " + self.credentials["RUNPOD_API_KEY"], "Content-Type": "application/json"}
        status, got, text = self.fake.send(method, path, headers, b"" if body is None else json.dumps(body).encode())
        value = json.loads(text) if text else None
        if status >= 300:
            raise ApiError(status, value["title"], got, value["detail"])
        return value

    def graphql(self, query, **variables):
        headers = {"Authorization": "Bearer " + self.credentials["RUNPOD_API_KEY"], "Content-Type": "application/json"}
        status, got, text = self.fake.send("POST", "/graphql", headers,
                                           json.dumps(dict(query=query, variables=variables)).encode())
        value = json.loads(text)
        if value.get("errors"):
            raise ApiError(status, value["errors"][0]["extensions"]["code"], got, value["errors"][0]["message"])
        return value["data"]

    def create(self, token="", tag="", type=None, spot=False, cap=None, drop=None, **more):
        if spot:
            bid = float(cap or self.price() / 1e6)
            return self.graphql(
                "mutation { podRentInterruptable(input: {name: \"%s\", imageName: \"i\", bidPerGpu: %f, "
                "gpuTypeId: \"%s\", gpuCount: 1, cloudType: SECURE}) { id machine { podHostId } } }" %
                (tag, bid, type or self.type))["podRentInterruptable"]["id"]
        p = dict(name=tag or "x", image=self.fake.settings["image"], gpu=dict(id=type or self.type, count=1), disk=20,
                 ports=["22/tcp"], **more)
        p.pop(drop, None)
        return self.call("POST", "/v2/pods", p)["id"]

    def describe(self, id):
        try:
            return PHASES[self.call("GET", "/v2/pods/" + id)["status"]]
        except ApiError as e:
            if e.status == 404:
                return "gone"
            raise

    def list(self, tag):
        return [p["id"] for p in self.call("GET", "/v2/pods")["pods"] if p["name"] == tag]

    def terminate(self, id):
        self.call("DELETE", "/v2/pods/" + id)

    def price(self):
        got = self.graphql(
            "query Prices($id: String!) { gpuTypes(input: {id: $id}) { id lowestPrice(input: {gpuCount: 1}) "
            "{ minimumBidPrice stockStatus } } }", id=self.type)
        return round(got["gpuTypes"][0]["lowestPrice"]["minimumBidPrice"] * 1e6)

    def notice(self, id):
        return None

    def special(self, t):
        id = self.create(tag="g")
        t.turn(5)
        got = self.graphql(
            "query{pod(input:{podId:\"%s\"}){id desiredStatus runtime{ports{ip privatePort publicPort type}}}}" % id)
        t.equal((got["pod"]["desiredStatus"], got["pod"]["runtime"]["ports"][0]["privatePort"]), ("RUNNING", 22))
        t.code("GRAPHQL_VALIDATION_FAILED", lambda: self.graphql("{ pod(input: {podId: \"x\"}) { id } nothing }"))
        t.code("GRAPHQL_PARSE_FAILED", lambda: self.graphql("{ pod(input: {podId: "))
        t.code(
            "GRAPHQL_VALIDATION_FAILED", lambda: self.graphql(
                "mutation($i: X!) { podFindAndDeployOnDemand(input: $i) { id } }", i=dict(name="n", bogus=1)))
        other = self.graphql(
            "mutation($i: PodFindAndDeployOnDemandInput!) { podFindAndDeployOnDemand(input: $i) { id } }",
            i=dict(name="n", imageName="i", gpuTypeId=self.type, gpuCount=2, cloudType="COMMUNITY"))
        other = other["podFindAndDeployOnDemand"]["id"]
        t.equal(t.machine(other)["price"], int(2 * 430_000 * 0.8))
        t.equal(len(self.graphql("{ myself { pods { id name desiredStatus } } }")["myself"]["pods"]), 2)
        self.graphql("mutation { podTerminate(input: {podId: \"%s\"}) }" % other)
        e = t.code("RUNPOD", lambda: self.graphql("mutation { podTerminate(input: {podId: \"%s\"}) }" % other))
        t.equal(e.text, "pod not found to terminate")
        self.volumes(t)
        self.call("POST", f"/v2/pods/{id}/action", dict(action="stop"))
        t.equal(self.call("GET", "/v2/pods/" + id)["cost"], 0.0)
        t.code("Conflict", lambda: self.call("POST", f"/v2/pods/{id}/action", dict(action="stop")))
        self.call("POST", f"/v2/pods/{id}/action", dict(action="terminate"))
        t.code("Not Found", lambda: self.terminate(id))
        t.code("Bad Request", lambda: self.create(cpu=dict(id="cpu3c")))
        t.fake.control("set", stock={self.type: 0})
        gpus = self.call("GET", "/v2/catalog/gpus?include=AVAILABILITY&product=POD&count=1&cloud=SECURE")["gpus"]
        t.equal({g["id"]: g["availability"] for g in gpus}[self.type], "NONE")
        spot = self.create(tag="s", spot=True, type=self.other, cap="0.21")
        t.fake.control("set", prices={self.other: {"spot": 300_000}})
        t.equal(self.describe(spot), "stopped")
        t.equal(self.call("PUT", "/v2/account/ssh-keys", dict(keys=["ssh-ed25519 A"])), dict(keys=["ssh-ed25519 A"]))

    def volumes(self, t):
        wish = dict(name="v", size=10, dataCenter="US-KS-2")
        for wrong in (dict(size=5), dict(type="FAST"), dict(dataCenterId="US-KS-2")):
            t.code("Unprocessable Entity", lambda: self.call("POST", "/v2/network-volumes", dict(wish, **wrong)))
        t.code("Bad Request", lambda: self.call("POST", "/v2/network-volumes", dict(wish, type="HIGH_PERFORMANCE")))
        t.code("Bad Request", lambda: self.call("POST", "/v2/network-volumes", dict(wish, dataCenter="CA-MTL-1")))
        path = "/v2/network-volumes/" + self.call("POST", "/v2/network-volumes", wish)["id"]
        t.equal(self.call("PATCH", path, dict(size=20)),
                dict(wish, id=path[20:], size=20, type="STANDARD"))
        t.code("Bad Request", lambda: self.call("PATCH", path, dict(size=10)))
        centers = self.call("GET", "/v2/catalog/datacenters?networkVolumeTypes=STANDARD")["dataCenters"]
        t.equal(sorted(c["id"] for c in centers), ["EU-RO-1", "US-KS-2"])
        mounts = dict(network=[dict(volumeId=path[20:], path="/data")])
        t.code("Bad Request", lambda: self.create(mounts=mounts, dataCenterIds=["EU-RO-1"]))
        t.code("Unprocessable Entity", lambda: self.create(mounts=dict(network=mounts["network"] * 2)))
        pods = [self.create(mounts=mounts, dataCenterIds=["US-KS-2"]) for _ in range(2)]
        t.equal(self.call("GET", "/v2/pods/" + pods[0])["mounts"], mounts)
        for pod in pods:
            e = t.code("Bad Request", lambda: self.call("DELETE", path))
            t.equal(e.text, "You must remove this network volume from all pods before deleting it.")
            self.terminate(pod)
            t.turn(5)
        t.equal([v["id"] for v in self.call("GET", "/v2/network-volumes")["networkVolumes"]], [path[20:]])
        self.call("DELETE", path)
        t.code("Not Found", lambda: self.call("GET", path))
