#!/usr/bin/env python3
"""Staging from the web: boxes that stage one URL at the same time share one download. usage: stage_test.py RILLE"""
import http.server, os, shutil, subprocess, sys, tempfile, threading

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-stage-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")
BODY = b"x" * 300_000
asked, all_here = [], threading.Event()


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:1000])
        all_here.wait(20)  # until every box has asked, or would have
        self.wfile.write(BODY[1000:])

    def log_message(self, *_):
        pass


class Signal(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        all_here.set()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"go")

    def log_message(self, *_):
        pass


web, signal = (http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) for handler in (Page, Signal))
for server in (web, signal):
    threading.Thread(target=server.serve_forever, daemon=True).start()

try:
    open(root + "/three.lua", "w").write(f"""local rille = require "rille"
local work = {{}}
for i = 1, 3 do
  work[i] = rille.spawn("box" .. i, function()
    local box = rille.rent("box", {{ provider = "local", gpu = "cpu" }})
    box:stage("http://127.0.0.1:{web.server_port}/data.bin", "data/")
    box:exec("size", {{ argv = {{ "sh", "-c", "wc -c < data/data.bin" }} }})
  end)
end
rille.spawn("signal", function()
  rille.sleep(1)
  local box = rille.rent("teller", {{ provider = "local", gpu = "cpu" }})
  box:stage("http://127.0.0.1:{signal.server_port}/now", "now")
end)
for _, w in ipairs(work) do w:wait() end
""")
    r = subprocess.run([rille, "run", "three.lua"], env=env, capture_output=True, text=True, cwd=root, timeout=120)
    check("three boxes stage one URL at once", r.returncode == 0, (r.stdout, r.stderr))
    check("each has the whole file", r.stdout.count("300000") == 3, r.stdout)
    check("it was fetched once", asked == ["/data.bin"], asked)
finally:
    web.shutdown()
    signal.shutdown()
    shutil.rmtree(root, ignore_errors=True)
finish()
