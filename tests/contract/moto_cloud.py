"""EC2 as moto plays it, with machines that start on this one. moto comes from PyPI into a virtual environment; all is
done in a network namespace of its own, where the addresses that moto invents are this machine's."""
import os, subprocess, sys, time, urllib.error, urllib.parse, urllib.request, venv
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PORT = 5555
# moto does not look at the signature, but at the service and region that are named in it.
HEADERS = {"Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/ec2/aws4_request, SignedHeaders=host, "
           "Signature=x", "Content-Type": "application/x-www-form-urlencoded"}


def environment(folder):
    """The folder of the virtual environment that has moto, made where it is not; 77: it cannot be."""
    folder = Path(folder)
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        pip = [folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "moto[server,ec2]"]
        if subprocess.run(pip).returncode:
            print("skipped: cannot install moto")
            sys.exit(77)
        (folder / "ready").touch()
    return folder


def enter(folder):
    """Runs this program again where moto can be; 77: it cannot."""
    if os.environ.get("RILLE_MOTO"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    if subprocess.run(["unshare", "-n", "ip", "link", "set", "lo", "up"], capture_output=True).returncode:
        print("skipped: it needs root, network namespaces, and ip")
        sys.exit(77)
    folder = environment(folder)
    os.execvpe("unshare", ["unshare", "-n", sys.executable, *sys.argv],
               dict(os.environ, RILLE_MOTO=str(folder / "bin/moto_server")))


def plain(tree):
    """XML without its namespace."""
    for node in tree.iter():
        node.tag = node.tag.rpartition("}")[2]
    return tree


class Moto:
    def __init__(self):
        self.url = f"http://127.0.0.1:{PORT}"
        self.process = subprocess.Popen([os.environ["RILLE_MOTO"], "-H", "127.0.0.1", "-p", str(PORT)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                self.image = self.ask("DescribeImages").findtext(".//imageId")
                return
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def ask(self, action, **more):
        body = urllib.parse.urlencode(dict(Action=action, Version="2016-11-15", **more)).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url, body, HEADERS), timeout=60) as reply:
            return plain(ElementTree.fromstring(reply.read()))

    def machines(self):
        """[(id, state, address)]"""
        return [(m.findtext("instanceId"), m.findtext("instanceState/name"),
                 m.findtext("networkInterfaceSet/item/association/publicIp"))
                for m in self.ask("DescribeInstances").iter("item") if m.find("instanceState") is not None]

    def disks(self):
        return [v.findtext("volumeId") for v in self.ask("DescribeVolumes").iterfind("volumeSet/item")]

    def user_data(self, machine):
        return self.ask("DescribeInstanceAttribute", InstanceId=machine, Attribute="userData").findtext(
            "userData/value")

    def is_ours(self, address):
        subprocess.run(["ip", "address", "add", address + "/32", "dev", "lo"], check=True)

    def close(self):
        self.process.terminate()
        self.process.wait(20)
