"""The first start of a rented machine on this one, in earnest: the user data that a driver has written is run as root
in mount and process namespaces of its own, and an sshd is started on what it left there, at port 22. The program that
does so has a network of its own (need.own_network). What it has started ends with the process that `begin` gives."""
import base64, os, shutil, subprocess
from pathlib import Path

BOOT = """set -e
for folder in /root /etc/ssh /etc/systemd/system /var/lib/rille /run/rille; do mount -t tmpfs none $folder; done
mkdir -m 700 /root/.ssh
key=$(sed -n "s/.*echo '\\(ssh-ed25519 [^']*\\)'.*/\\1/p" "$1/user-data" | head -n 1)
echo "command=\\"echo 'Please login as another user';exit 142\\" $key" >/root/.ssh/authorized_keys
PATH=$1/stubs:$PATH sh "$1/user-data" >&2
[ -z "$2" ] || { rm /etc/ssh/ssh_host_ed25519_key*; ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key; }
cp /var/lib/rille/instance/machine.json "$1/machine.json"
[ ! -e /var/lib/rille/look ] || { LOOKS; } >"$1/looks"
ls /etc/systemd/system >"$1/units"
exec SSHD -D -e -f "$1/sshd_config" """

# What looks for an agent, as its timer runs it: right after the start, long after it, long after while an agent holds
# its lock, at once after that one was killed, and long after that. `now` is what the machine has been up for.
LOOKS = """unit=/etc/systemd/system/rille-look.service
look() { echo "$1"; PATH=$here/stubs:$PATH $(sed -n s/^ExecStart=//p $unit); }
here=$1 seen=/run/rille/seen lock=/var/lib/rille/instance/agent.lock now=$(cut -d. -f1 /proc/uptime)
look fresh
echo $((now - 100000)) >$seen
look orphaned
flock -o $lock sleep 1000 & agent=$!
while flock -n $lock true; do :; done
look held
kill $agent; wait $agent || :
look killed
echo $((now - 100000)) >$seen
look later
rm $seen $lock"""


def sshd():
    return shutil.which("sshd") or "/usr/sbin/sshd"


def missing():
    """Why it cannot be done here; "" if it can."""
    if not os.path.exists(sshd()):
        return "sshd not found: apt-get install openssh-server"
    made = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/root"], capture_output=True, text=True)
    return f"a mount namespace needs root: sudo ./bootstrap test ({made.stderr.strip()})" if made.returncode else ""


def prepare(root):
    os.makedirs("/var/lib/rille", exist_ok=True)
    os.makedirs("/run/sshd", exist_ok=True)
    Path(root, "stubs").mkdir()
    os.makedirs("/run/rille", exist_ok=True)
    for name in ("systemctl", "service"):  # of this machine nothing is restarted
        Path(root, "stubs", name).write_text(f"#!/bin/sh\necho {name} \"$@\"\n")
        os.chmod(f"{root}/stubs/{name}", 0o755)
    Path(root, "sshd_config").write_text(
        "Port 22\nListenAddress 0.0.0.0\nHostKey /etc/ssh/ssh_host_ed25519_key\nPidFile none\nStrictModes no\n"
        "KexAlgorithms curve25519-sha256\n"  # the default takes 0.2 s of a core
        "UsePAM no\nAuthorizedKeysFile /root/.ssh/authorized_keys\nPermitRootLogin prohibit-password\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel ERROR\n")


def user_data(parameters):
    """The user data among a call's parameters, however they are nested: base64; gcp calls it a script, as it is."""
    if isinstance(parameters, list):
        return next((found for p in parameters if (found := user_data(p))), None)
    if not isinstance(parameters, dict):
        return None
    if parameters.get("key") == "startup-script":
        return base64.b64encode(parameters["value"].encode()).decode()
    for key, value in parameters.items():
        if key.lower().replace("_", "") in ("userdata", "customdata") and value:
            return value
    return user_data(list(parameters.values()))


def begin(root, data, other_key=False):
    """`data`: base64. `other_key`: the host has another key than its user data said."""
    Path(root, "user-data").write_bytes(base64.b64decode(data))
    script = BOOT.replace("SSHD", sshd()).replace("LOOKS", LOOKS)
    with open(root + "/boot.log", "w") as log:
        return subprocess.Popen(["unshare", "-m", "--propagation", "private", "-p", "-f", "--mount-proc",
                                 "--kill-child", "sh", "-c", script, "sh", root, "other" if other_key else ""],
                                stderr=log)
