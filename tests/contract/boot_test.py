#!/usr/bin/env python3
"""The first start of a rented machine, as the driver has written it: the user data that the fake was given is run as
root in a mount namespace of its own, an sshd is started on what it has left there, and the runner reaches an agent
through the channel that the driver made: the first connection already knows the host key. Then a spot machine, whose
agent tells that it will be taken away; for aws `rille doctor --live`; and another host key, which is refused.
usage: boot_test.py RILLE PROVIDER [refuse]   `refuse`: the last part, too. It needs root; its network
is its own."""
import json, os, re, shutil, subprocess, sys, tempfile, time, urllib.request
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
import first_boot, need
from first_boot import user_data
from tap import check, finish

rille, provider = os.path.abspath(sys.argv[1]), sys.argv[2]
need.met(first_boot.missing)
need.own_network()
root = tempfile.mkdtemp(prefix="rille-boot-")
ahead = 30 if provider in ("azure", "gcp") else 100  # seconds of notice
first_boot.prepare(root)


def try_it(other_key, words=("run", root + "/rented.lua"), taken=False):
    fake = subprocess.Popen([sys.executable, "-B", str(here / "fakes" / (provider + ".py"))], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    told = json.loads(fake.stdout.readline())
    settings, zone = dict(told["settings"], traits=dict(visibility_lag_ms=300)), told["settings"].get("zone", "")
    settings["regions"] = [r for r in settings["regions"] if zone.startswith(r)] or settings["regions"][:1]
    settings["endpoints"] = dict(settings["endpoints"],
                                 metadata=f"http://127.0.0.1:{told['port']}/_metadata/only")
    Path(root, "providers.json").write_text(json.dumps({provider: settings}))
    env = dict(os.environ, **told["env"], RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", HOME=root,
               NO_COLOR="1", RILLE_THREADS="1", RILLE_PROVIDERS=root + "/providers.json")
    url = f"http://127.0.0.1:{told['port']}/_fake/state"
    state = lambda: json.loads(urllib.request.urlopen(url, timeout=20).read())
    Path(root, "rented.lua").write_text(f"""
local rille = require "rille"
local box = rille.rent("b", {{ provider = "{provider}", gpu = "T4", ttl = "2h", unguarded = true, price = 1,
                              gpu_check = false }})
return box:call("where", {{ args = 20 }}, function(n)
  local seen = io.popen("cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\\\0' '\\\\n'"):read("*a")
  return {{ sum = n + 22, at = os.getenv("RILLE_INSTANCE"), seen = seen }}
end)""")
    Path(root, "taken.lua").write_text(f"""
local rille = require "rille"
local box = rille.rent("b", {{ provider = "{provider}", gpu = "T4", spot = true, ttl = "2h", price = 1,
                              unguarded = true, on_loss = "fail", gpu_check = false }})
return box:call("waits", function()
  for i = 1, 60 do
    local left = rille.preempting()
    if left then return {{ left = left }} end
    rille.sleep("1s")
  end
  return {{ left = -1 }}
end)""")
    runner = subprocess.Popen([rille, "--json", *words], env=env, cwd=root, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
    boot = None  # a process namespace, too: what the agent has started ends with it
    try:
        end = time.monotonic() + 60
        data = None
        while time.monotonic() < end and not data and runner.poll() is None:
            data = next((found for c in state()["calls"] if (found := user_data(c["parameters"]))), None)
            time.sleep(0.05)
        check("the machine is given user data", data is not None,
              runner.communicate() if runner.poll() is not None else "it is still at it")
        boot = first_boot.begin(root, data or "", other_key)
        if taken:
            body = json.dumps(dict(id=state()["machines"][0]["id"], in_seconds=ahead)).encode()
            urllib.request.urlopen(urllib.request.Request(url.replace("state", "reclaim"), body), timeout=20)
        out, err = runner.communicate(timeout=150)
        return runner.returncode, out, err, state()["alive"], told["secrets"]
    finally:
        runner.kill()
        if boot:
            boot.kill()
            boot.wait(20)
        fake.stdin.close()
        fake.wait(10)


try:
    code, out, err, alive, secrets = try_it(False)
    log = Path(root, "boot.log").read_text()
    result = json.loads(out).get("result", {}) if code == 0 else {}
    check("the runner reaches the machine, and a call runs there", result.get("sum") == 42, out + err + log)
    check("in the folder that the first start has made", result.get("at") == "/var/lib/rille/instance", result)
    pinned = [file.read_text() for file in Path(root, "config/rille/ssh/known_hosts").iterdir()]
    data = Path(root, "user-data").read_text()
    check("the host key in user data is replaced, and no longer accepted", len(pinned) == 1 and
          re.fullmatch("# rotated\nrille-\\S+ ssh-ed25519 \\S+\n", pinned[0]) and pinned[0].split()[-1] not in data,
          (pinned, log))
    seen = result.get("seen", "")
    leaked = [s for s in secrets if s in seen or s in out + err + log]
    check("no secret of the provider's is in its processes' environment or words, nor in what is shown",
          "RILLE_INSTANCE=" in seen and not leaked, seen[-2000:])
    machine = json.loads(Path(root, "machine.json").read_text())
    known = machine["expires_wall_us"] > time.time() * 1e6 and machine["tag"].startswith("rille-")
    check("the agent knows its end", known, machine)
    check("nothing is alive afterwards", alive == 0, alive)
    code, out, err, alive, _ = try_it(False, ("run", root + "/taken.lua"), taken=True)
    left = json.loads(out)["result"]["left"] if code == 0 else None
    # Alibaba's list may be first to tell it, without the time; Huawei never tells the time.
    most = 300 if provider in ("alibaba", "huawei") else ahead
    check("a spot machine learns from its cloud that it will be taken away", left and most / 5 < left <= most,
          (left, out + err + Path(root, "boot.log").read_text()))
    told = json.loads(Path(root, "machine.json").read_text())["notice"]
    check("since it got the address of the metadata service",
          told["url"].startswith("http") and "cloud" not in told, told)
    if provider == "aws":
        looks = Path(root, "looks").read_text().split("\n")
        ends = "systemctl --no-block start rille-end.service"
        check("a machine ends itself where no agent was for orphan_after, and only then", looks ==
              ["fresh", "orphaned", ends, "held", "killed", "later", ends, ""], looks)
        code, out, err, alive, _ = try_it(False, ("doctor", "--live", "aws", "--gpu", "T4", "--max-cost", "1"))
        told = json.loads(out) if code == 0 else {}
        steps = {s["step"]: s for s in told.get("steps", [])}
        check("rille doctor --live tries all of it, and gives it back", told.get("ok") and alive == 0 and list(steps) ==
              ["credentials", "rent", "list", "call", "dead man", "release", "gone"], (code, out, err))
        check("the machine knows its end, and has a timer for it", "has a timer" in steps["dead man"]["found"], steps)
        check("and says what it has cost", 0 < told["cost"] < 1, told)
    if sys.argv[3:] == ["refuse"]:
        code, out, err, alive, _ = try_it(True)
        check("another host key is refused", code != 0 and "ost key verification failed" in out, out + err)
        check("and nothing is alive", alive == 0, alive)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
