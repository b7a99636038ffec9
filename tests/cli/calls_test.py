#!/usr/bin/env python3
"""Calls and programs on an instance as a script meets them: their limits of time, and what cannot be asked for.
usage: calls_test.py RILLE"""
import json, os, re, resource, shutil, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-calls-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(name, source):
    path = f"{root}/{name}.lua"
    open(path, "w").write('local rille = require "rille"\nlocal box = rille.rent("box", { provider = "local" })\n'
                          + source)
    r = subprocess.run([rille, "run", path], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout + r.stderr


# Each is caught, says which limit, and leaves the box of use.
code, out = run("caught", """
local function caught(verb, ...)
  local ok, err = pcall(box[verb], box, ...)
  print(verb, ok, err.kind, err.message, err.retryable)
end
caught("exec", "sleeper", { argv = { "sleep", "1000" }, timeout = "100ms" })
caught("call", "waits", { timeout = "100ms" }, function() rille.sleep("1h") end)
caught("call", "swallows", { timeout = "100ms" }, function() pcall(rille.sleep, "1h"); rille.sleep("1h") end)
print("after", box:exec("fine", { argv = { "true" }, timeout = "10m" }).code)
print("in time", box:call("fine", { timeout = "10m" }, function() return 5 end))
""")
check("the script goes on", code == 0 and "after\t0" in out and "in time\t5" in out, out)
check("a program is ended",
      "exec\tfalse\ttimeout\tprogram 'sleeper' took longer than its timeout of 100ms\tnil" in out, out)
for name in ("waits", "swallows"):
    check(f"a call that {name} is ended",
          f"call\tfalse\ttimeout\tcall '{name}' took longer than its timeout of 100ms\tnil" in out, out)

# A call's result may have what a step's may.
code, out = run("large", """
local function list(n) local t = {} for i = 1, n do t[i] = ("x"):rep(1000) end return t end
print("20 MB", #box:call("large", { args = 20000 }, list))
print(pcall(box.call, box, "larger", { args = 70000 }, list))
""")
check("a result of 20 MB", code == 0 and "20 MB\t20000" in out, out)
check("one that is too large says what to do", "over the limit of 67.1 MB (result_bytes_max)" in out and
      "write the result to a file and fetch the file with box:get" in out, out)

code, out = run("uncaught", 'box:exec("slow", { argv = { "sleep", "1000" }, timeout = "100ms" })')
check("uncaught, the command's exit code is a timeout's", code == 124 and "'slow' took longer" in out, (code, out))

code, out = run("options", """
for _, name in ipairs { "ports", "heartbeat" } do
  local ok, err = pcall(box.exec, box, "x", { argv = { "true" }, [name] = "1" })
  print(name, ok, err.kind, err.message)
end
""")
for name in ("ports", "heartbeat"):
    check(f"{name} is refused by its name", f"{name}\tfalse\tinvalid" in out and f"'{name}'" in out, out)

# Of processes with keys in their memory no core dumps are left; what they start may leave them as before.
soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
most = 4096 if hard == resource.RLIM_INFINITY or hard >= 4096 else hard
cores = """
print("runner", rille.step("core", function()
  return io.open("/proc/self/limits"):read("*a"):match("Max core file size%s+(%S+)")
end))
print("call", box:call("core", function()
  return io.open("/proc/self/limits"):read("*a"):match("Max core file size%s+(%S+)")
end))
box:exec("program", { argv = { "grep", "core", "/proc/self/limits" } })
"""
resource.setrlimit(resource.RLIMIT_CORE, (most, hard))
env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":disable_coredump=0"  # it would set a limit of its own
code, out = run("cores", cores)
check("no core dumps of runners and of calls", code == 0 and "runner\t0\n" in out and "call\t0\n" in out, out)
check("programs have the limit that was there", re.search(rf"Max core file size +{most} ", out), out)
env["RILLE_CORE_DUMPS"] = "1"
code, out = run("cores", cores)
check("RILLE_CORE_DUMPS=1 leaves the limit as it is", f"runner\t{most}\n" in out and f"call\t{most}\n" in out, out)
env.pop("RILLE_CORE_DUMPS")
resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))

# A machine's programs have none of the keys that it was rented with, not even this machine's.
env.update(AWS_SECRET_ACCESS_KEY="planted-aws", AZURE_CLIENT_SECRET="planted-azure", RUNPOD_API_KEY="planted-runpod",
           KEPT="kept")
code, out = run("secrets", """
print("call", unpack(box:call("env", function()
  return { os.getenv "KEPT", os.getenv "AWS_SECRET_ACCESS_KEY" or "none" }
end)))
box:exec("env", { argv = { "env" } })
""")
check("calls and programs have the rest", code == 0 and "call\tkept\tnone" in out and "KEPT=kept" in out, out)
check("no call or program has a key", "planted" not in out, out)

# Secrets by name: there while it runs, and in no file.
env["HF_TOKEN"] = "planted-token"
code, out = run("named", """
local length = "echo program ${#HF_TOKEN}"
box:exec("program", { argv = { "sh", "-c", length }, secrets = { "HF_TOKEN" } })
print("call", box:call("call", { secrets = { "HF_TOKEN" } }, function() return #os.getenv "HF_TOKEN" end))
print(pcall(box.exec, box, "unset", { argv = { "true" }, secrets = { "NOT_SET" } }))
print(pcall(box.exec, box, "wrong", { argv = { "true" }, secrets = { HF_TOKEN = "x" } }))
box:exec("kept", { argv = { "sh", "-c", "cp -r $RILLE_INSTANCE " .. rille.args { to = "copy" }.to } })
""".replace('rille.args { to = "copy" }.to', f'"{root}/copy"'))
check("secrets are there", code == 0 and "program 13" in out and "call\t13" in out, out)
check("a variable that is not set is reported",
      "secrets: the environment variable NOT_SET is not set on this machine" in out, out)
check("values are refused", "must be a list of names" in out, out)
found = subprocess.run(["grep", "-rl", "planted-", root + "/home", root + "/copy"], capture_output=True,
                       text=True).stdout
check("no file has one", os.path.isdir(root + "/copy") and not found, found)

# Another process of the user cannot command the agent through its socket, whatever it says of itself.
open(root + "/attack.py", "w").write("""
import json, os, socket, struct
for hello in ({}, {"token": ""}, {"token": "0" * 64}, {"token": "0" * 64, "epoch": 2**53, "generation": 2**53}):
    for request in ({"op": "shutdown"}, {"op": "forget", "calls": ["main/attack#1"]}, {"op": "cancel", "call": "x"},
                    {"op": "start", "call": "x", "epoch": 2**53, "generation": 1, "spec": {}}):
        told = ""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(os.environ["RILLE_INSTANCE"] + "/agent.sock")
            stream = s.makefile("rwb")
            try:
                for kind, header in ((1, {"protocol": 1, **hello}), (2, {"id": 1, **request})):
                    text = json.dumps(header).encode()
                    stream.write(struct.pack("<IBI", 5 + len(text), kind, len(text)) + text)
                stream.flush()
                while not told:
                    length, kind, header = struct.unpack("<IBI", stream.read(9))
                    text = stream.read(header)
                    stream.read(length - 5 - header)
                    if kind in (3, 6):  # a response, or the agent's reason for closing
                        told = json.loads(text).get("error", {}).get("kind", "obeyed")
            except (OSError, struct.error):
                told = told or "closed"
        print("attack", told)
""")
code, out = run("attack", f"""
box:exec("attack", {{ argv = {{ "python3", "{root}/attack.py" }} }})
print("after", box:call("after", function() return 5 end))
""")
check("a process of the same user commands no agent", re.findall(r"attack (\w+)", out) == ["auth"] * 16, out)
check("and disturbs no run", code == 0 and "after\t5" in out, out)

leases = subprocess.run([rille, "leases", "--json"], env=env, capture_output=True, text=True).stdout
check("nothing is left", json.loads(leases) == [], leases)
shutil.rmtree(root, ignore_errors=True)
finish()
