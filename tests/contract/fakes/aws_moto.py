#!/usr/bin/env python3
"""moto's EC2 behind the controls of a fake, for moto_test.py; run by a Python that has moto[server]. In front of moto:
/_fake/ (state, vanish, page_size), the size of pages, and a refusal for the price list, which moto does not play."""
import io, json, logging, os, sys, threading, urllib.parse

from moto.backends import get_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

ACCOUNT, REGION, TAG = "123456789012", "us-east-1", "rille"


class Front:

    def __init__(self):
        self.moto, self.page_size, self.calls = DomainDispatcherApplication(create_backend_app), 0, []

    def ec2(self):
        return get_backend("ec2")[ACCOUNT][REGION]

    def machines(self):
        """All that were made for Rille."""
        tagged = self.ec2().describe_tags(filters={"key": [TAG], "resource-type": ["instance"]})
        tags = {t["resource_id"]: t["value"] for t in tagged}
        return [dict(id=i.id, tag=tags[i.id], state=i.state) for i in self.ec2().all_instances() if i.id in tags]

    def state(self):
        machines = self.machines()
        disks = [d for d in self.ec2().volumes.values() if any(t["key"] == TAG for t in d.get_tags())]
        alive = sum(m["state"] != "terminated" for m in machines) + len(disks)
        return dict(machines=machines, alive=alive, calls=self.calls)

    def control(self, what, a):
        if what == "state":
            return self.state()
        if what == "vanish":
            for reservation in self.ec2().reservations.values():
                reservation.instances = [i for i in reservation.instances if i.id != a["id"]]
        if what == "set":
            self.page_size = a.get("page_size", self.page_size)
        return {}  # no clock to turn, no faults

    def __call__(self, environ, start_response):
        request = Request(environ)
        if request.path.startswith("/_fake/"):
            told = self.control(request.path[len("/_fake/"):], json.loads(request.get_data() or "{}"))
            return Response(json.dumps(told), mimetype="application/json")(environ, start_response)
        if request.headers.get("X-Amz-Target", "").startswith("AWSPriceListService."):
            refused = json.dumps({"__type": "AccessDeniedException", "message": "moto has no price list"})
            return Response(refused, 400, mimetype="application/x-amz-json-1.1")(environ, start_response)
        data = request.get_data(cache=False)
        form = urllib.parse.parse_qsl(data.decode(), keep_blank_values=True)
        self.calls.append(dict(form).get("Action", ""))
        if self.page_size and "MaxResults" in dict(form):
            form = [(k, str(self.page_size) if k == "MaxResults" else v) for k, v in form]
        data = urllib.parse.urlencode(form).encode()
        environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(data), str(len(data))
        return self.moto(environ, start_response)


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    front = Front()
    server = make_server("127.0.0.1", 0, front, threaded=True, request_handler=MotoRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    image = next(i.id for i in front.ec2().describe_images() if "buntu" in i.name)
    print(
        json.dumps(
            dict(port=server.server_port, secrets=["moto-secret"], temporary={},
                 env=dict(AWS_ACCESS_KEY_ID="AKIAMOTO", AWS_SECRET_ACCESS_KEY="moto-secret"),
                 settings=dict(endpoints=dict(ec2=url, pricing=url, sts=url, metadata=""), regions=[REGION],
                               image=image))),
        flush=True)
    sys.stdin.read()
    os._exit(0)


main()
