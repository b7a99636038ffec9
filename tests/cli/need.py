"""What a test needs of the machine that it runs on. A test without it fails, and its last line is the command that
mends it. Only what needs a GPU is skipped (exit code 77)."""
import os, shutil, subprocess, sys


def met(missing):
    """Goes on if missing() is "". Else runs this program again as root, where sudo asks for no password, since most of
    what is missing is a right; else fails with the reason, which ends with the command that mends it."""
    why = missing()
    if not why:
        return
    if os.getuid() != 0 and shutil.which("sudo") and not subprocess.run(["sudo", "-n", "true"],
                                                                         capture_output=True).returncode:
        values = [f"{name}={value}" for name, value in os.environ.items()]
        os.execvp("sudo", ["sudo", "-n", "env", *values, sys.executable, "-B", *sys.argv])
    print(f"missing: {why}")
    sys.exit(1)


def own_mounts():
    """Runs this program again where it may mount a disk that only it sees: in a mount namespace of its own, for a plain
    user in a user namespace."""
    if os.environ.get("RILLE_OWN_MOUNTS"):
        return
    way = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    made = subprocess.run([*way, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True)
    if made.returncode == 0:
        os.execvpe(way[0], [*way, sys.executable, "-B", *sys.argv], dict(os.environ, RILLE_OWN_MOUNTS="1"))
    met(lambda: f"a mount namespace needs root: sudo ./bootstrap test ({made.stderr.strip()})")


def no_network():
    """Why no network of one's own can be made; "" if it can."""
    if not shutil.which("ip"):
        return "ip not found: apt-get install iproute2"
    made = subprocess.run(["unshare", "-n", "ip", "link", "set", "lo", "up"], capture_output=True, text=True)
    return f"a network namespace needs root: sudo ./bootstrap test ({made.stderr.strip()})" if made.returncode else ""


def own_network():
    """Runs this program again, as root, in a network of its own: the loopback alone, with every port and address free,
    which cannot be reached from outside."""
    if not os.environ.get("RILLE_OWN_NETWORK"):
        met(no_network)
        os.execvpe("unshare", ["unshare", "-n", sys.executable, "-B", *sys.argv],
                   dict(os.environ, RILLE_OWN_NETWORK="1"))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
