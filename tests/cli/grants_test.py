#!/usr/bin/env python3
"""What a run may reach: --grant, the file beside the script, resume, forks, child runs, redirects.
usage: grants_test.py RILLE"""
import base64, glob, hashlib, http.server, json, os, shutil, signal, sqlite3, subprocess, sys, tempfile, threading

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = os.path.realpath(tempfile.mkdtemp(prefix="rille-grants-"))
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", SECRET="hidden")
os.makedirs(root + "/data/deeper")
os.makedirs(root + "/scripts")
for name, text in (("data/open", "open"), ("closed", "closed"), ("data/deeper/open", "deep")):
    open(f"{root}/{name}", "w").write(text)
os.symlink(root + "/closed", root + "/data/link")


def run(*words, timeout=60):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=timeout, cwd=root)
    return r.returncode, r.stdout + r.stderr


def script(name, source):
    path = f"{root}/scripts/{name}.lua"
    open(path, "w").write('local rille = require "rille"\n' + source)
    return path


def result(*words):
    """The result of a run, or its error as 'kind message'."""
    r = subprocess.run([rille, "--json", *words], env=env, capture_output=True, text=True, timeout=60, cwd=root)
    try:
        said = json.loads(r.stdout)
    except ValueError:
        return f"exit {r.returncode}: {r.stdout}{r.stderr}"
    return said["result"] if "result" in said else f'{said["error"]["kind"]} {said["error"]["message"]}'


def killed_at(line, *words):
    """Runs the command until it prints the line, and kills it."""
    p = subprocess.Popen([rille, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         cwd=root)
    for said in p.stdout:
        if said.strip() == line:
            break
    p.send_signal(signal.SIGKILL)
    p.wait()


READ = """
local args = rille.args { path = "" }
return rille.step("read", { retry = 1 }, function()
  local file = assert(io.open(args.path))
  local text = file:read("*a")
  file:close()
  return text
end)"""

try:
    read = script("read", READ)
    check("without --grant everything is granted", result("run", read, "--path", root + "/closed") == "closed")
    only = ("run", "--grant", f"read={root}/data", read, "--path")
    check("what is granted can be read", result(*only, root + "/data/open") == "open")
    check("folders below it, too", result(*only, root + "/data/deeper/../deeper/open") == "deep")
    for what in ("closed", "data/../closed", "data/link", "data/deeper/../../closed"):
        said = result(*only, f"{root}/{what}")
        check(f"{what} is not", said.startswith("denied ") and f'needs the grant read = "{root}"' in said, said)
    check("relative folders of --grant are below the working directory",
          result("run", "--grant", "read=data", "--grant", "process", read, "--path", root + "/data/open") == "open")
    code, out = run("run", "--grant", "process", read, "--path", root + "/closed")
    check("the message says what to add", code == 1 and f"--grant read={root}" in out, out)

    code, out = run("run", "--grant", "raed=/x", read)
    check("an unknown grant is a mistake in the command line", code == 2 and "did you mean 'read'?" in out, out)

    # --- the file beside the script
    beside = root + "/scripts/read.grants.json"
    open(beside, "w").write('{"read": ["../data"]}')
    check("the file beside the script takes away", result("run", read, "--path", root + "/closed").startswith("denied"))
    check("its folders are relative to its own", result("run", read, "--path", root + "/data/open") == "open")
    check("--grant stands instead of it",
          result("run", "--grant", f"read={root}/closed", read, "--path", root + "/closed") == "closed")
    script("calm", 'rille.data.bytes("/etc/passwd", { context = 8, batch = 1 })')
    open(root + "/scripts/calm.grants.json", "w").write("{}")
    code, out = run("simulate", root + "/scripts/calm.lua")
    check("a simulation is denied what the run would be", "needs the grant read" in out, out)
    open(beside, "w").write('{"read": ')
    code, out = run("run", read)
    check("a damaged file stops the run before it begins", code == 2 and "read.grants.json" in out, out)
    os.remove(beside)

    # --- resume, forks
    waits = script("waits", f"""
rille.step("before", {{ retry = 1 }}, function() return 1 end)
print("waiting")
local path = rille.signal("path")
return rille.step("read", {{ retry = 1 }}, function() return assert(io.open(path)):read("*a") end)""")
    killed_at("waiting", "run", "--grant", f"read={root}/data", waits)
    killed = json.loads(run("ps", "--json")[1])[0]["id"]
    run("signal", killed, "path", json.dumps(root + "/closed"))
    said = result("resume", killed)
    check("a resumed run has the grants that it began with", said.startswith("denied reading"), said)
    again = script("again", open(waits).read().split("\n", 1)[1] + "\n-- edited")
    code, out = run("--json", "resume", killed, "--retry-failed", "--with", again)
    check("as has one that goes on with another script", "needs the grant read" in out, out)

    # --- the spending limit of a host program
    spends = script("spends", 'print("waiting") rille.signal("go")\nrille.budget { limit = 2 }')
    killed_at("waiting", "run", spends)
    limited = json.loads(run("ps", "--json")[1])[0]["id"]
    digest = hashlib.sha256(b"1000000").hexdigest()
    with sqlite3.connect(root + "/home/journal.db") as db:  # as rille_run_options.spend_micros records it
        db.execute("insert into blobs(sha256, content) values(?, '1000000')", (digest,))
        db.execute("insert into sources(run, module, sha256) values(?, ':spend_micros', ?)", (limited, digest))
    db.close()
    run("signal", limited, "go")
    said = result("resume", limited)
    check("the command keeps the limit that a host program gave the run", "more than the $1.00" in str(said), said)

    # --- token ids, which another script could replace
    with open(root + "/data/bytes.tiktoken", "w") as f:
        f.writelines(f"{base64.b64encode(bytes([b])).decode()} {b}\n" for b in range(256))
    open(root + "/data/words", "w").write("words " * 100)
    tokens = script("tokens", f"""
local tokenizer = rille.data.tokenizer("{root}/data/bytes.tiktoken", {{ pattern = "gpt2" }})
rille.data.tokens("{root}/data/words", {{ tokenizer = tokenizer, batch = 1, context = 5 }})
return rille.run_id""")
    of = result("run", "--grant", f"read={root}/data", tokens)
    own = glob.glob(f"{root}/home/runs/{of}/tokens/*")
    check("a script with less than all grants keeps token ids in its own folder",
          len(own) == 1 and not os.path.exists(root + "/home/cache/tokens"), of)
    of = result("run", tokens)
    check("another keeps them for all", len(glob.glob(f"{root}/home/cache/tokens/*")) == 1, of)

    # --- child runs
    script("child", f"""
local args = rille.args {{ path = "", wait = false }}
if args.wait then print("child waits") rille.signal("go") end
return rille.step("read", {{ retry = 1 }}, function() return assert(io.open(args.path)):read("*a") end)""")
    parent = script("parent", """
local args = rille.args { path = "", wait = false }
return rille.run("child.lua", { path = args.path, wait = args.wait }, { id = args.wait and "the-child" or nil })""")
    granted = ("run", "--grant", f"read={root}/data", parent, "--path")
    check("a child run may do what its parent may", result(*granted, root + "/data/open") == "open")
    said = result(*granted, root + "/closed")
    check("and no more", "needs the grant read" in said, said)
    said = result("run", "--grant", "process", script("elsewhere", f'return rille.run("{root}/closed")'))
    check("a script beside the parent needs no grant, another does", said.startswith("denied reading"), said)
    killed_at("child waits", *granted, root + "/closed", "--wait")
    run("signal", "the-child", "go", "true")
    said = result("resume", "the-child")
    check("a child that is resumed alone has its parent's grants", said.startswith("denied reading"), said)

    # --- the network
    class Target(http.server.BaseHTTPRequestHandler):
        asked = []

        def do_GET(self):
            self.asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"data")

        def log_message(self, *_):
            pass

    class Redirect(Target):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{target.server_port}/secret")
            self.end_headers()

    target, redirect = (http.server.ThreadingHTTPServer(("127.0.0.1", 0), h) for h in (Target, Redirect))
    for server in (target, redirect):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    stage = script("stage", """
local args = rille.args { url = "" }
local box = rille.rent("box", { gpu = "cpu", provider = "local" })
return box:stage(args.url, "x").bytes""")

    def staged(server, url_of):
        return result("run", "--grant", "process", "--grant", "providers=local", "--grant",
                      f"network=127.0.0.1:{server.server_port}", stage, "--url",
                      f"http://127.0.0.1:{url_of.server_port}/x")

    check("a granted server is asked", staged(target, target) == 4)
    said = staged(redirect, target)
    check("another is not", said.startswith("denied box:stage at"), said)
    Target.asked.clear()
    said = staged(redirect, redirect)
    check("nor one that a granted server redirects to", str(said).startswith("denied") and not Target.asked, said)

    # --- this machine
    said = result("run", "--grant", "providers=local", stage)
    check("this machine needs the grant process", said.startswith("denied rille.rent from local"), said)
    leak = script("leak", """
local box = rille.rent("box", { gpu = "cpu", provider = "local" })
return box:exec("env", { argv = { "true" }, secrets = { "SECRET" } })""")
    said = result("run", "--grant", "process", "--grant", "providers=local", leak)
    check("a secret needs the grant of its variable", said.startswith("denied reading the environment"), said)
    mine = script("mine", """
return rille.step("write", { retry = 1 }, function()
  local file = assert(io.open(rille.home .. "/note", "w"))
  file:write("x")
  file:close()
  return 1
end)""")
    check("rille.home names the run's own folder", result("run", "--grant", "write=rille.home", mine) == 1)
    check("which is granted like others", str(result("run", "--grant", "process", mine)).startswith("denied writing"))
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
