"""A client of vast.py: it rents the cheapest offer of its type that is free."""
import json, urllib.parse

from clients import ApiError, Client


class Vast(Client):
    name, token, type, other, noticed, reclaimed = "vast", False, "Tesla T4", "A10", False, ("stopped", )
    CODES = dict(capacity="invalid_args", quota="insufficient_credit", throttle="429", error="internal_error",
                 auth="auth_error", signature="auth_error", unknown="invalid_args", missing="invalid_args",
                 spot_price="invalid_price")
    create_operation, list_operation = "createInstance", "listInstances"
    required, unknown = "image", {"bogus": 1}
    ask = None

    def call(self, method, path, body=None):
        status, got, text = self.fake.send(
            method, "/api" + path,
            {"Authorization": "Bearer " + self.credentials["VAST_API_KEY"], "Content-Type": "application/json"},
            b"" if body is None else json.dumps(body).encode())
        if status == 429:
            raise ApiError(status, "429", got, text.decode())
        value = json.loads(text) if text else {}
        if status >= 300:
            error = ApiError(status, value.get("error"), got, value.get("msg"))
            error.contract = value.get("new_contract")
            raise error
        return value

    def offers(self, type, kind="ondemand"):
        return self.call(
            "POST", "/v0/bundles/",
            dict(limit=100, type=kind, gpu_name={"eq": type}, rentable={"eq": True}, order=[["dph_total",
                                                                                             "asc"]]))["offers"]

    def create(self, token="", tag="", type=None, spot=False, cap=None, drop=None, **more):
        p = dict(image=self.fake.settings["image"], disk=20, label=tag, runtype="ssh_direct", **more)
        if spot:
            p["price"] = float(cap or self.price() / 1e6)
        p.pop(drop, None)
        if not self.ask or type:
            found = self.offers(type or self.type)
            ask = found[0]["id"] if found else 1
        else:
            ask = self.ask
        return str(self.call("PUT", f"/v0/asks/{ask}/", p)["new_contract"])

    def describe(self, id):
        try:
            i = self.call("GET", f"/v0/instances/{id}/")["instances"]
        except ApiError as e:
            if e.status == 404:
                return "gone"
            raise
        return {None: "starting", "loading": "starting", "running": "running", "exited": "stopped"}[i["actual_status"]]

    def list(self, tag):
        ids, more = [], ""
        filters = urllib.parse.quote(json.dumps({"label": {"eq": tag}}))
        while True:
            got = self.call(
                "GET", f"/v1/instances?limit=25&select_filters={filters}" +
                (f"&after_token={urllib.parse.quote(more)}" if more else ""))
            ids += [str(i["id"]) for i in got["instances"]]
            more = got["next_token"]
            if not more:
                return ids

    def terminate(self, id):
        self.call("DELETE", f"/v0/instances/{id}/")

    def price(self):
        return round(self.offers(self.type, "bid")[0]["min_bid"] * 1e6)

    def notice(self, id):
        return None

    def special(self, t):
        ask = self.offers(self.type)[0]["id"]
        id = str(self.call("PUT", f"/v0/asks/{ask}/", dict(image="i", label="x"))["new_contract"])
        t.code("invalid_args", lambda: self.call("PUT", f"/v0/asks/{ask}/", dict(image="i")))
        t.equal(
            self.fake.send("GET", f"/api/v0/instances/{id}",
                           {"Authorization": "Bearer " + self.credentials["VAST_API_KEY"]})[0], 308)
        # Refused, and there all the same.
        with t.assertRaises(ApiError) as got:
            self.create(tag="trap", spot=True, cap="0.01")
        trap = str(got.exception.contract)
        t.equal((self.list("trap"), self.describe(trap)), ([trap], "stopped"))
        self.call("PUT", f"/v0/instances/bid_price/{trap}/", dict(client_id="me", price=0.2))
        t.turn(5)
        t.equal((self.describe(trap), t.machine(trap)["price"]), ("running", 200_000))
        t.fake.control("set", prices={self.type: {"spot": 300_000}})
        view = self.call("GET", f"/v0/instances/{trap}/")["instances"]
        t.equal((view["cur_state"], view["next_state"], view["intended_status"]), ("stopped", ) * 3)
        self.terminate(trap)
        t.code("no_such_instance", lambda: self.terminate(trap))
        self.call("PUT", f"/v0/instances/{id}/", dict(label="renamed"))
        t.equal(self.list("renamed"), [id])
        self.call("PUT", f"/v0/instances/{id}/", dict(state="stopped"))
        t.equal(self.call("GET", f"/v0/instances/{id}/")["instances"]["intended_status"], "stopped")
        t.code("invalid_args", lambda: self.call("POST", "/v0/bundles/", dict(bogus={"eq": 1})))
        t.fake.control("set", stock={self.other: 0})
        t.equal(self.offers(self.other), [])
        t.equal(self.call("GET", "/v0/users/current/")["id"], 1)
