#!/usr/bin/env python3
"""Volumes of this machine: what a script and the command say of them, and what does not delete them. usage:
volume_test.py RILLE"""
import json, os, shutil, signal, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-volume-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")
with open(root + "/providers.json", "w") as file:
    json.dump({"ssh": {"hosts": ["nobody@127.0.0.1"]}}, file)


def command(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def run(text, *words):
    with open(root + "/script.lua", "w") as script:
        script.write('local rille = require "rille"\n' + text)
    return command("run", "script.lua", "--new", *words)


def volumes():
    return {v["name"]: v for v in json.loads(command("volume", "ls", "--json")[1])}


def folders():
    return sorted(f for f in os.listdir(root + "/home/volumes") if f.startswith("v-"))


DATA = 'local vol = rille.volume("data", { size = "1GB", provider = "local" })\n'
RENT = 'local box = rille.rent("box", { gpu = "cpu", volumes = { data = vol } })\n'
READ = 'print(box:call("read", function() return io.open("data/x"):read("*a") end))\n'

try:
    code, out, err = run(DATA + """
rille.scope("one", function()
  """ + RENT + """
  assert(vol.state == "attached" and vol.attached_to == "box", vol.state)
  box:call("write", function() local f = io.open("data/x", "w") f:write("moon") f:close() end)
end)
assert(vol.state == "ready" and vol.attached_to == nil)
""" + RENT + READ + 'print(vol)')
    check("a second machine finds what the first one wrote", code == 0 and out.startswith("moon"), (out, err))
    check("a volume says what it is", "Volume 'data' (folder of local, here, $0.00/h, attached)" in out, out)
    check("its making is told", "made the volume data" in err, err)
    first = volumes()["data"]
    check("it is there after the run", first["state"] == "ready" and first["size"] == 10**9 and first["keep"], first)
    check("as a folder", folders() == [first["volume"]], folders())

    code, out, err = command("leases")
    check("leases: nothing ends it", "kept" in out and "nobody" in out, out)
    check("gc leaves it", command("gc")[1] == "nothing to clean up\n" and "data" in volumes())
    ran = json.loads(command("leases", "--json")[1])[0]["run"]
    for words in (["gc", "--now", ran], ["release", ran], ["release", "data"], ["rm", ran]):
        command(*words)
        check(" ".join(words[:-1]) + " leaves it", volumes()["data"]["state"] == "ready", volumes())
    code, out, err = command("release", "data")
    check("release says how it is deleted", code == 1 and "rille volume rm data" in err, err)

    code, out, err = run('local vol = rille.volume("data")\n' + RENT + READ)
    check("another run gets it by its name", code == 0 and out.startswith("moon"), (out, err))
    code, out, err = run('rille.volume("data", { size = "2GB" })')
    check("but not as another one", code == 1 and "has size = 1" in err and "rille volume rm data" in err, err)
    code, out, err = run('rille.volume("data", { keep = false })')
    check("nor to end with a scope", code == 1 and "keep = true" in err, err)

    code, out, err = run(DATA + RENT + 'local ok, e = pcall(vol.delete, vol)\nprint(ok, e.code)')
    check("it is not deleted while a machine has it", out.startswith("false\tvolume_in_use\n"), (out, err))
    with open(root + "/waits.lua", "w") as script:
        script.write('local rille = require "rille"\n' + DATA + RENT +
                     'print("there")\nrille.signal("go", { timeout = "10m" })')
    waits = subprocess.Popen([rille, "run", "waits.lua"], env=env, cwd=root, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    check("the script waits", waits.stdout.readline() == "there\n")
    code, out, err = command("volume", "rm", "data")
    check("nor by the command", code == 1 and "is mounted on 'box'" in err and "rille release l-" in err, (code, err))
    check("and it is not harmed", volumes()["data"]["state"] == "attached", volumes())
    waits.send_signal(signal.SIGKILL)
    waits.wait()
    waiting = next(v["run"] for v in json.loads(command("leases", "--json")[1]) if v["name"] == "box")
    command("gc", "--now", waiting)
    check("a killed run's machine is ended, the volume is not", volumes()["data"]["state"] == "ready", volumes())

    code, out, err = run("""
rille.scope("s", function()
  local vol = rille.volume("scratch", { size = "1GB", provider = "local", keep = false })
  """ + RENT + """
  print(box:call("write", function() io.open("data/y", "w"):close() return "wrote" end))
end)
print(rille.step("there", function() return rille.home end))""")
    check("one of a scope ends with it", code == 0 and folders() == [first["volume"]], (out, err, folders()))
    check("and is gone from the list", set(volumes()) == {"data"}, volumes())

    SCRATCH = 'rille.volume("scratch", { size = "1GB", provider = "local", keep = false })'
    code, out, err = run(f"""
local box = rille.scope("s", function()
  local vol = {SCRATCH}
  return rille.rent("scratch", {{ gpu = "cpu", volumes = {{ data = vol }} }})
end)
box:call("write", function() io.open("data/y", "w"):close() end)
local ok, e = pcall(function() return {SCRATCH} end)
print(ok and e.state, rille.volume("data").state)""")
    check("one of a machine that a scope returns goes with it",
          code == 0 and out.startswith("attached\tready\n\nLEASE "), (out, err))
    check("and ends with the outer scope", set(volumes()) == {"data"}, volumes())
    code, out, err = run(f"""
local vol = {SCRATCH}
rille.scope("inner", function()
  local ok, e = pcall(function() return {SCRATCH} end)
  print(ok, e.code)
end)
print(vol.state)""")
    check("no other scope gets it", code == 0 and out.startswith("false\tname_taken\nready\n\nLEASE "), (out, err))

    # A run that goes back makes the volumes of its scopes anew.
    BACK = 'print(rille.volume("data").state)\nrille.scope("s", function()\n  local vol = ' + SCRATCH + """
  """ + RENT + """
  box:call("write", function() io.open("data/y", "w"):close() end)
  rille.step("middle", function() return 1 end)
  box:call("again", function() assert(io.open("data/y")):close() end)
end)
return "done" """
    code, out, err = run(BACK)
    check("the origin", code == 0, err)
    for words in (["fork", "last", "--from", "main/middle#1"], ["fork", "last", "--from", "main/middle#1", "--rerent"]):
        code, out, err = command(*words)
        check(" ".join(words) + " makes its own", code == 0 and "scratch" in err, (code, out, err))
    code, out, err = command("invalidate", "last", "main/middle#1")
    check("an invalidated one is forgotten", code == 0, (out, err))
    code, out, err = command("resume", "last")
    check("and made anew", code == 0, (out, err))
    check("nothing is left of them", set(volumes()) == {"data"} and folders() == [first["volume"]], volumes())

    with open(root + "/waits.lua", "w") as script:
        script.write('local rille = require "rille"\nlocal vol = ' + SCRATCH + "\n" + RENT +
                     'print("there")\nrille.signal("go", { timeout = "10m" })')
    waits = subprocess.Popen([rille, "run", "waits.lua"], env=env, cwd=root, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    check("another script waits", waits.stdout.readline() == "there\n")
    waits.send_signal(signal.SIGKILL)
    waits.wait()
    waiting = next(v["run"] for v in json.loads(command("leases", "--json")[1]) if v["name"] == "box")
    code, out, err = command("release", waiting)
    check("release ends a run's machines before their volumes", code == 0 and set(volumes()) == {"data"}, (code, err))

    code, out, err = run('rille.rent("data", { gpu = "cpu" }):detach("1h")')
    check("a machine may have a volume's name", code == 0, err)
    code, out, err = command("release", "data")
    check("which release means", code == 0 and volumes()["data"]["state"] == "ready", (code, err, volumes()))

    env["RILLE_PROVIDERS"] = root + "/providers.json"
    code, out, err = run('rille.volume("x", { size = "1GB", provider = "ssh" })')
    del env["RILLE_PROVIDERS"]
    check("a provider without volumes: who has them", code == 1 and "ssh has no volumes" in err and
          "local" in err.split("hint")[-1], err)
    for text, says in (
            ('rille.volume("x")', "no size is given"),
            ('rille.volume("x", { size = 5, provider = "local" })', "expected a size with a unit"),
            ('rille.volume("x", { size = "1GB", provider = "local", kind = "nvme" })', "kinds: folder"),
            ('rille.volume("x", { size = "1GB", provider = "local", region = "moon" })', "in moon"),
            ('rille.volume("x", { sise = "1GB" })', "did you mean size?"),
            ('rille.volume("x", { size = "1GB", keep = 1 })', "expected true or false"),
            ('rille.rent("b", { gpu = "cpu", volumes = { data = 5 } })', "expected folder names and volumes"),
            ('rille.rent("b", { gpu = "cpu", volumes = { ["../x"] = rille.volume("data") } })', "is not a folder's"),
            ('local v = rille.volume("data") rille.rent("b", { gpu = "cpu", volumes = { a = v, b = v } })',
             "mount it once"),
            ('rille.rent("b", { gpu = "cpu", region = "moon", volumes = { a = rille.volume("data") } })',
             "the rent asks for another place")):
        code, out, err = run(text)
        check(says, code == 1 and says in err, err)
    check("nothing was made by those", set(volumes()) == {"data"}, volumes())

    with open(root + "/home/volumes/" + first["volume"] + "/outside", "w"):
        pass
    check("volume rm deletes it", command("volume", "rm", "data")[0] == 0 and not volumes() and not folders())
    check("the list is empty", command("volume", "ls")[1] == "no volumes\n")
    code, out, err = command("volume", "rm", "data")
    check("a second time: there is none", code == 1 and "there is no volume 'data'" in err, err)
    cost = [line.split() for line in command("cost")[1].splitlines() if " data " in line]  # RUN, LEASE, ..
    check("cost shows it still, without a machine's times", any(c[4:7] == ["-", "-", "-"] for c in cost), cost)
    check("nothing is rented", "nothing is rented" in command("leases")[1])
    code, out, err = run(DATA + "print(vol.state)\nvol:delete()\nvol:delete()\nprint(vol.state)")
    check("a script makes it anew, and deletes it twice", out.startswith("ready\ndeleted\n"), (out, err))
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
