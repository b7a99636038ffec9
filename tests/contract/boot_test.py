#!/usr/bin/env python3
"""The first start of a rented machine, as the driver has written it: the user data that the fake was given is run as
root in a mount namespace of its own, an sshd is started on what it has left there, and the runner reaches an agent
through the channel that the driver made: the first connection already knows the host key. Then the same with another
host key, which is refused. usage: boot_test.py RILLE PROVIDER [refuse]   `refuse`: the second part, too. It needs root
and port 22 of the loopback; else it is skipped."""
import base64, json, os, shutil, socket, subprocess, sys, tempfile, time, urllib.request
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish

rille, provider = os.path.abspath(sys.argv[1]), sys.argv[2]
sshd = shutil.which("sshd") or "/usr/sbin/sshd"
with socket.socket() as s:
    free = s.connect_ex(("127.0.0.1", 22)) != 0
namespace = os.getuid() == 0 and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/root"],
                                                capture_output=True).returncode == 0
if not free or not namespace or not os.path.exists(sshd):
    print("skipped: it needs root, mount namespaces, sshd, and port 22")
    sys.exit(77)
root = tempfile.mkdtemp(prefix="rille-boot-")
os.makedirs("/var/lib/rille", exist_ok=True)
os.makedirs("/run/sshd", exist_ok=True)
Path(root, "stubs").mkdir()
for name in ("systemctl", "service"):  # of this machine nothing is restarted
    Path(root, "stubs", name).write_text("#!/bin/sh\nexit 0\n")
    os.chmod(f"{root}/stubs/{name}", 0o755)
Path(root, "sshd_config").write_text(
    "Port 22\nListenAddress 0.0.0.0\nHostKey /etc/ssh/ssh_host_ed25519_key\nPidFile none\nStrictModes no\nUsePAM no\n"
    "AuthorizedKeysFile /root/.ssh/authorized_keys\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n"
    "KbdInteractiveAuthentication no\nLogLevel ERROR\n")
BOOT = """set -e
for folder in /root /etc/ssh /etc/systemd/system /var/lib/rille; do mount -t tmpfs none $folder; done
PATH=$1/stubs:$PATH sh "$1/user-data"
[ -z "$2" ] || { rm /etc/ssh/ssh_host_ed25519_key*; ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key; }
cp /var/lib/rille/instance/machine.json "$1/machine.json"
ls /etc/systemd/system >"$1/units"
exec SSHD -D -e -f "$1/sshd_config" """.replace("SSHD", sshd)


def try_it(other_key):
    fake = subprocess.Popen([sys.executable, "-B", str(here / "fakes" / (provider + ".py"))], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    told = json.loads(fake.stdout.readline())
    settings, zone = dict(told["settings"], traits=dict(visibility_lag_ms=300)), told["settings"].get("zone", "")
    settings["regions"] = [r for r in settings["regions"] if zone.startswith(r)]
    Path(root, "providers.json").write_text(json.dumps({provider: settings}))
    env = dict(os.environ, **told["env"], RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", HOME=root,
               NO_COLOR="1", RILLE_THREADS="1", RILLE_PROVIDERS=root + "/providers.json")
    url = f"http://127.0.0.1:{told['port']}/_fake/state"
    state = lambda: json.loads(urllib.request.urlopen(url, timeout=20).read())
    Path(root, "rented.lua").write_text(f"""
local rille = require "rille"
local box = rille.rent("b", {{ provider = "{provider}", gpu = "T4", ttl = "2h", unguarded = true, price = 1 }})
return box:call("where", {{ args = 20 }}, function(n)
  return {{ sum = n + 22, at = os.getenv("RILLE_INSTANCE") }}
end)""")
    runner = subprocess.Popen([rille, "--json", "run", root + "/rented.lua"], env=env, cwd=root, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    boot = None  # a process namespace, too: what the agent has started ends with it
    try:
        end = time.monotonic() + 60
        data = None
        while time.monotonic() < end and not data and runner.poll() is None:
            data = next((find(c["parameters"]) for c in state()["calls"] if find(c["parameters"])), None)
            time.sleep(0.05)
        check("the machine is given user data", data is not None, data)
        Path(root, "user-data").write_bytes(base64.b64decode(data or ""))
        boot = subprocess.Popen(["unshare", "-m", "--propagation", "private", "-p", "-f", "--mount-proc",
                                 "--kill-child", "sh", "-c", BOOT, "sh", root,
                                 "other" if other_key else ""], stderr=open(root + "/boot.log", "w"))
        out, err = runner.communicate(timeout=150)
        return runner.returncode, out, err, state()["alive"]
    finally:
        runner.kill()
        if boot:
            boot.kill()
            boot.wait(20)
        fake.stdin.close()
        fake.wait(10)


def find(parameters):
    """The user data among a call's parameters, however they are nested."""
    for key, value in parameters.items() if isinstance(parameters, dict) else ():
        if key.lower().replace("_", "") == "userdata" and value:
            return value
        if isinstance(value, dict) and find(value):
            return find(value)
    return None


try:
    code, out, err, alive = try_it(False)
    log = Path(root, "boot.log").read_text()
    result = json.loads(out).get("result", {}) if code == 0 else {}
    check("the runner reaches the machine, and a call runs there", result.get("sum") == 42, out + err + log)
    check("in the folder that the first start has made", result.get("at") == "/var/lib/rille/instance", result)
    machine = json.loads(Path(root, "machine.json").read_text())
    known = machine["expires_wall_us"] > time.time() * 1e6 and machine["tag"].startswith("rille-")
    check("the agent knows its end", known, machine)
    check("nothing is alive afterwards", alive == 0, alive)
    if sys.argv[3:] == ["refuse"]:
        code, out, err, alive = try_it(True)
        check("another host key is refused", code != 0 and "ost key verification failed" in out, out + err)
        check("and nothing is alive", alive == 0, alive)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
