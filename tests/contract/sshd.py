"""A real sshd on the loopback, in a temporary folder, for the tests of what goes over ssh. It needs no root, and lets
in the one key that it makes. `with Sshd() as host:` gives the settings of the provider `ssh` for it."""
import os, pwd, shutil, socket, subprocess, tempfile, time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Sshd:
    def __init__(self, **host):
        self.host = host
        self.folder = tempfile.mkdtemp(prefix="rille-sshd-")
        self.port = free_port()
        self.user = pwd.getpwuid(os.getuid()).pw_name

    def key(self, name):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.folder}/{name}"], check=True)

    def __enter__(self):
        self.key("host")
        self.key("user")
        shutil.copy(f"{self.folder}/user.pub", f"{self.folder}/authorized")
        with open(f"{self.folder}/host.pub") as file:
            key = " ".join(file.read().split()[:2])
        with open(f"{self.folder}/known", "w") as file:
            file.write(f"[127.0.0.1]:{self.port} {key}\n")
        with open(f"{self.folder}/sshd_config", "w") as file:
            file.write(f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\nPidFile none\n"
                       "KexAlgorithms curve25519-sha256\n"  # the default takes 0.2 s of a core
                       f"AuthorizedKeysFile {self.folder}/authorized\nStrictModes no\nUsePAM no\n"
                       "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
                       "MaxStartups 100\nMaxSessions 100\nLogLevel ERROR\nAcceptEnv *\n")
        if os.getuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # sshd wants its empty folder
        program = shutil.which("sshd") or "/usr/sbin/sshd"
        self.log = open(f"{self.folder}/log", "w")
        self.process = subprocess.Popen([program, "-D", "-e", "-f", f"{self.folder}/sshd_config"], stderr=self.log)
        until = time.monotonic() + 20
        while time.monotonic() < until and self.process.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.02)
        raise RuntimeError("sshd does not listen: " + open(f"{self.folder}/log").read())

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def settings(self, **more):
        """A host of the provider `ssh`; its instances stand in this folder."""
        return {"address": f"{self.user}@127.0.0.1", "name": "loop", "port": self.port,
                "identity": f"{self.folder}/user", "directory": f"{self.folder}/rented", **self.host, **more}

    def options(self):
        return ["-F", "none", "-o", f"UserKnownHostsFile={self.folder}/known", "-o", "GlobalKnownHostsFile=none"]
