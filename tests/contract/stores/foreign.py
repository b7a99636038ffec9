"""Servers of stores that others have written, each started for one test and ended by its process."""
import os, shutil, socket, subprocess, sys, tempfile, time, urllib.error, urllib.request
from pathlib import Path

from fake_store import BUCKET, ID, SECRET

BIN = Path(sys.executable).parent


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Foreign:
    program, bucket, region, scheme, address = "", BUCKET, "us-east-1", "s3", "127.0.0.1"
    without = ()  # keys that this server cannot have

    @classmethod
    def missing(cls):
        return "" if cls.path() else f"{cls.program}: run this with the Python of its tests/requirements*.txt"

    @classmethod
    def path(cls):
        """Beside this Python, or where its wheel has unpacked it."""
        if (BIN / cls.program).exists():
            return str(BIN / cls.program)
        found = (p for p in Path(sys.prefix).glob(f"lib/**/{cls.program}*") if p.is_file() and os.access(p, os.X_OK))
        return str(next(found, ""))

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="rille-store-")
        self.port = free_port()
        self.endpoint = f"http://{self.address}:{self.port}"
        # As a leader of its own, so that a launcher's child ends with it.
        self.process = subprocess.Popen([self.path(), *self.arguments()], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, cwd=self.folder, start_new_session=True)
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(self.endpoint + "/", timeout=5).close()
                break
            except urllib.error.HTTPError:
                break
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > until or self.process.poll() is not None:
                    self.close()
                    raise
                time.sleep(0.05)
        self.prepare()

    def prepare(self):
        request = urllib.request.Request(f"{self.endpoint}/{self.bucket}", method="PUT")
        urllib.request.urlopen(request, timeout=20).close()

    def settings(self):
        return {}

    def environment(self):
        return dict(AWS_ACCESS_KEY_ID=ID, AWS_SECRET_ACCESS_KEY=SECRET)

    def url(self, key="", region=None):
        return f"{self.scheme}://{self.bucket}/{key}?endpoint={self.endpoint}&region={region or self.region}"

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 15)
        self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)


class Moto(Foreign):
    program = "moto_server"

    def arguments(self):
        return ["-H", self.address, "-p", str(self.port)]


class Rclone(Foreign):
    """A folder of files as buckets: what no file can be called, no key can be."""
    program = "rclone"
    without = ("x//y", "ends/", "dots/./../end", "data/", "data")

    def arguments(self):
        (Path(self.folder) / self.bucket).mkdir()
        return ["serve", "s3", self.folder, "--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{ID},{SECRET}"]

    def prepare(self):
        pass


class FakeGcs(Foreign):
    program, scheme = "fake-gcs-server", "gs"

    def arguments(self):
        return ["-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port), "-backend", "memory",
                "-public-host", f"127.0.0.1:{self.port}"]

    def prepare(self):
        request = urllib.request.Request(f"{self.endpoint}/storage/v1/b?project=p",
                                         f'{{"name": "{self.bucket}"}}'.encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=20).close()

    def environment(self):
        return dict(STORAGE_EMULATOR_HOST=self.endpoint)

    def url(self, key="", region=None):
        return f"gs://{self.bucket}/{key}"
