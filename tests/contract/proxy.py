"""An HTTP proxy on the loopback: forwards what it is sent, tunnels what it is asked to (CONNECT), and counts. With
`says`, a status and a body, it does neither: it answers so itself."""
import http.client, http.server, select, socket, threading, urllib.parse


class Proxy:

    def __init__(self, says=None):
        self.asked, proxy = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer_itself(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response_only(says[0])
                self.send_header("Content-Length", str(len(says[1])))
                self.end_headers()
                self.wfile.write(says[1])

            def forward(self):
                proxy.asked.append(self.path)
                if says:
                    return self.answer_itself()
                to = urllib.parse.urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {k: v for k, v in self.headers.items() if not k.lower().startswith("proxy-")}
                peer = http.client.HTTPConnection(to.netloc, timeout=30)
                peer.request(self.command, to.path + ("?" + to.query if to.query else ""), body, headers)
                answer = peer.getresponse()
                data = answer.read()
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                peer.close()
                return None

            def do_CONNECT(self):
                proxy.asked.append(self.path)
                if says:
                    return self.answer_itself()
                host, _, port = self.path.partition(":")
                with socket.create_connection((host, int(port)), timeout=30) as peer:
                    self.send_response_only(200)
                    self.end_headers()
                    ends = {self.connection: peer, peer: self.connection}
                    while ready := select.select(list(ends), [], [], 30)[0]:
                        for one in ready:
                            data = one.recv(65536)
                            if not data:
                                self.close_connection = True
                                return None
                            ends[one].sendall(data)
                return None

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05, ), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
