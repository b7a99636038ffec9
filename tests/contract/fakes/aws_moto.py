#!/usr/bin/env python3
"""moto's EC2 behind the front of the scripted fake; run by a Python that has moto[server]. The front is aws.py's: it
verifies signatures and dates, injects faults, and records each call. What is asked for is done by moto, and what moto
leaves out stands here: a token makes one machine, a new one is shown late, a spot machine is taken away, pages are as
small as a test wants them. moto has no price list: that is refused; nor placement groups: those are the fake's."""
import urllib.parse

from aws import Aws
from base import Refusal, Reply, main
from moto.backends import get_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.test import Client

NOT_MOTOS = ("DescribePlacementGroups", "CreatePlacementGroup", "DeletePlacementGroup")
ACCOUNT, REGION, TAG = "123456789012", "us-east-1", "rille"


class OnMoto(Aws):

    def prepare(self):
        super().prepare()
        self.moto = Client(DomainDispatcherApplication(create_backend_app))
        self.made_by, self.unseen, self.doomed = {}, {}, {}  # token -> its answer; machine -> when it is seen, taken

    def settings(self):
        image = next(i.id for i in self.ec2().describe_images() if "buntu" in i.name)
        return dict(endpoints=dict(ec2=self.url, pricing=self.url, sts=self.url, metadata=""), regions=[REGION],
                    image=image)

    def ec2(self):
        return get_backend("ec2")[ACCOUNT][REGION]

    def machines(self):
        """All that were made for Rille."""
        tagged = self.ec2().describe_tags(filters={"key": [TAG], "resource-type": ["instance"]})
        tags = {t["resource_id"]: t["value"] for t in tagged}
        return [
            dict(id=i.id, tag=tags[i.id], state=i.state, spot=i.lifecycle == "spot") for i in self.ec2().all_instances()
            if i.id in tags
        ]

    def take_away(self):
        due = [id for id, at in self.doomed.items() if at <= self.world.now()]
        for id in due:
            self.doomed.pop(id)
        if due:
            self.ec2().terminate_instances(due)

    # Controls.

    def control(self, what, a):
        self.take_away()
        if what == "vanish":
            return self.without([a["id"]]) and {}
        if what == "reclaim":
            self.doomed[a["id"]] = self.world.now() + a.get("in_seconds", 120)
            return {}
        told = super().control(what, a)
        if what == "state":
            told["machines"] = self.machines()
            disks = [d for d in self.ec2().volumes.values() if any(t["key"] == TAG for t in d.get_tags())]
            told["alive"] = sum(m["state"] != "terminated" for m in told["machines"]) + len(disks)
        return told

    def without(self, ids):
        """Takes these machines off moto's list; what stood there before."""
        before = [(r, r.instances) for r in self.ec2().reservations.values()]
        for reservation, instances in before:
            reservation.instances = [i for i in instances if i.id not in ids]
        return before

    # Calls.

    def run(self, operation, parameters, request):
        if self.service == "pricing":
            raise Refusal(400, "AccessDeniedException", "moto has no price list")
        if request.header("X-Amz-Target") or operation in NOT_MOTOS:
            return super().run(operation, parameters, request)
        self.take_away()
        token = parameters.get("ClientToken") if operation == "RunInstances" else None
        if token in self.made_by:
            return self.made_by[token]
        hidden = [id for id, at in self.unseen.items() if at > self.world.now()]
        before = self.without(hidden) if hidden and operation.startswith("Describe") else []
        try:
            reply = self.ask_moto(request)
        finally:
            for reservation, instances in before:
                reservation.instances = instances
        if operation == "RunInstances" and reply.status == 200:
            self.unseen.update((m["id"], self.world.now() + self.world.lag) for m in self.machines()
                               if m["id"] not in self.unseen)
            if token:
                self.made_by[token] = reply
        return reply

    def ask_moto(self, request):
        form = request.form()
        if self.world.page_size:
            form = [(k, str(self.world.page_size) if k == "MaxResults" else v) for k, v in form]
        headers = [(k, v) for k, v in request.headers.items() if k.lower() not in ("content-length", "host")]
        said = self.moto.open(request.target, method=request.method, headers=headers,
                              data=urllib.parse.urlencode(form).encode())
        return Reply(said.status_code, said.get_data(), said.content_type)


if __name__ == "__main__":
    main(OnMoto)
