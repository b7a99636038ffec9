"""A provider that is reached by HTTP and runs in the test itself: it gives offers, and nothing else; `question` is
its body."""
import contextlib, http.server, json, threading


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


def serve(cloud):
    """The server, and the provider's entry in the settings. The caller ends it: server.shutdown()."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), cloud)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, {"url": f"http://127.0.0.1:{server.server_port}", "traits": {"dead_man": "provider"}}
