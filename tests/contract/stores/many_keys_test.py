#!/usr/bin/env python3
"""A bucket with more keys than fit into anything: patterns are searched in little memory, and what cannot be listed
says what to do instead. usage: many_keys_test.py RILLE [KEYS]"""
import http.server, os, resource, shutil, subprocess, sys, tempfile, threading, urllib.parse

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)) + "/../../cli"]
from tap import check, finish  # noqa: E402

rille, keys = os.path.abspath(sys.argv[1]), int((sys.argv[2:] or [300_000])[0])
ROW = ("<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
       "<ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag><Size>10</Size></Contents>")


def key(number):
    return f"d/{number:09}/" + "a-rather-long-name-of-an-object-" * 20


class Bucket(http.server.BaseHTTPRequestHandler):
    """Makes each page of its list when it is asked for, and has no object of a key with a star."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        if "list-type" not in asked:
            return self.reply(404, "<Error><Code>NoSuchKey</Code><Message>there is none</Message></Error>")
        first = int(asked.get("continuation-token", 0))
        last = min(first + 1000, keys)
        rows = "".join(ROW.format(key(n)) for n in range(first, last))
        more = f"<NextContinuationToken>{last}</NextContinuationToken>" if last < keys else ""
        self.reply(200, f"<ListBucketResult><Name>bucket</Name><IsTruncated>{str(last < keys).lower()}</IsTruncated>"
                        f"{rows}{more}</ListBucketResult>")

    def do_HEAD(self):
        self.reply(404, "")

    def reply(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
threading.Thread(target=server.serve_forever, args=(0.05, ), daemon=True).start()
root = tempfile.mkdtemp(prefix="rille-keys-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1",
           AWS_REGION="eu-north-1", AWS_ENDPOINT_URL_S3=f"http://127.0.0.1:{server.server_port}",
           AWS_ACCESS_KEY_ID="ID", AWS_SECRET_ACCESS_KEY="SECRET")


def run(*words, script=None):
    if script:
        with open(root + "/script.lua", "w") as file:
            file.write('local rille = require "rille"\n' + script)
        words = ("run", root + "/script.lua")
    out = subprocess.run([rille, *words], capture_output=True, text=True, timeout=300, cwd=root, env=env)
    return out.returncode, out.stdout + out.stderr


def most_memory_mb():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


for name, done in (
        ("rille cp", run("cp", "s3://bucket/d/**/*.bin", "to")),
        ("box:stage", run(script='rille.rent("b", { gpu = "cpu" }):stage("s3://bucket/d/**/*.bin", "to/")'))):
    check(f"{name} searches a pattern among {keys} keys", done[0] == 1 and "no object matches" in done[1], done)
check("in little memory", most_memory_mb() < 100, most_memory_mb())
code, text = run(script='rille.store("s3://bucket"):list("d/")')
check("a list is limited", code == 1 and "more than 10000 keys: the option limit" in text and "folders = true" in text,
      text)
code, text = run(script='rille.store("s3://bucket"):list("d/", { limit = 1000000 })')
check("a list that is too large to keep says so", code == 1 and "take more than 64 MB" in text
      and "list a longer prefix" in text, text)
server.shutdown()
shutil.rmtree(root, ignore_errors=True)
finish()
