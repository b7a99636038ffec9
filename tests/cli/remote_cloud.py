"""Providers that are reached by HTTP and run in the test itself. RemoteCloud gives offers, and nothing else;
RentingCloud also gives machines, on which nothing runs. `question` is the body of a request."""
import contextlib, http.server, json, threading, time


class RemoteCloud(http.server.BaseHTTPRequestHandler):
    stock = []

    def answer(self):
        """The status and the body of an answer."""
        return 200, {"offers": self.stock}

    def do_POST(self):
        self.question = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        status, body = self.answer()
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client has not waited
            self.wfile.write(data)

    def log_message(self, *_):
        pass


class RentingCloud(RemoteCloud):
    machines = {}

    def answer(self):
        what, asked = self.path.rpartition("/")[2], self.question
        if what == "create":
            one = {"id": f"m-{len(self.machines)}", "state": "live", "tag": asked["tag"],
                   "created_wall_us": int(time.time() * 1e6)}
            return 200, self.machines.setdefault(asked["token"], one)
        if what == "list":
            return 200, {"machines": [m for m in self.machines.values()
                                      if m["state"] == "live" and m["tag"].startswith(asked["tag"])]}
        one = next((m for m in self.machines.values() if m["id"] == asked.get("id")), None)
        if what == "terminate" and one:
            one["state"] = "gone"
        if what in ("describe", "terminate"):
            return (200, one) if one else (404, {})
        return super().answer()


def offer(name, price, **more):
    return dict({"provider": "remote", "id": name, "vcpus": 4, "memory_bytes": 16_000_000_000, "region": "x",
                 "price_micros_per_hour": price, "billing": {"unit_s": 3600}}, **more)


def serve(cloud):
    """The server, and the provider's entry in the settings. The caller ends it: server.shutdown()."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), cloud)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, {"url": f"http://127.0.0.1:{server.server_port}", "traits": {"dead_man": "provider"}}
