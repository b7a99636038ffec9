"""EC2 as moto plays it, with machines that start on this one, by a Python that has moto (tests/requirements.txt). The
program has a network of its own (need.own_network), where the addresses that moto invents are this machine's."""
import os, subprocess, sys, time, urllib.error, urllib.parse, urllib.request
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PORT = 5555
# moto does not look at the signature, but at the service and region that are named in it.
HEADERS = {"Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/ec2/aws4_request, SignedHeaders=host, "
           "Signature=x", "Content-Type": "application/x-www-form-urlencoded"}


def plain(tree):
    """XML without its namespace."""
    for node in tree.iter():
        node.tag = node.tag.rpartition("}")[2]
    return tree


class Moto:
    def __init__(self):
        self.url = f"http://127.0.0.1:{PORT}"
        server = Path(sys.executable).parent / "moto_server"
        self.process = subprocess.Popen([server, "-H", "127.0.0.1", "-p", str(PORT)],
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
