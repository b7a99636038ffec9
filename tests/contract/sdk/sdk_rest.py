"""The runpod package (GraphQL) and Vast's command rent from the fakes."""
import json, os, pathlib, subprocess, sys, tempfile

from sdk_base import Sdk


class Runpod(Sdk):
    name = "runpod"

    def test(self):
        os.environ["RUNPOD_API_BASE_URL"] = self.fake.url()  # read while it is imported
        import runpod
        from runpod.error import AuthenticationError, QueryError
        runpod.api_key = self.env["RUNPOD_API_KEY"]
        self.assertEqual(runpod.get_gpu("NVIDIA L4")["lowestPrice"]["minimumBidPrice"], 0.22)
        self.assertIn("NVIDIA H100 80GB HBM3", [g["id"] for g in runpod.get_gpus()])
        self.assertEqual(runpod.get_user()["networkVolumes"], [])
        pods = [
            runpod.create_pod(f"rille-{n}", "runpod/base", "NVIDIA L4", ports="22/tcp", env={"A": "b c"})["id"]
            for n in range(2)
        ]
        self.turn(5)
        self.assertEqual([p["name"] for p in runpod.get_pods()], ["rille-0", "rille-1"])
        pod = runpod.get_pod(pods[0])
        self.assertEqual((pod["desiredStatus"], pod["env"], pod["runtime"]["ports"][0]["privatePort"]),
                         ("RUNNING", ["A=b c"], 22))
        self.fake.control("fault", kind="capacity")
        with self.assertRaises(QueryError) as got:
            runpod.create_pod("rille-2", "runpod/base", "NVIDIA L4")
        self.assertIn("no longer any instances available", str(got.exception))
        for id in pods:
            runpod.terminate_pod(id)
        with self.assertRaises(QueryError) as got:
            runpod.terminate_pod(pods[0])
        self.assertEqual(str(got.exception), "pod not found to terminate")
        runpod.api_key = "wrong"
        with self.assertRaises(AuthenticationError):
            runpod.get_pods()
        self.assertEqual(self.alive(), 0)


class Vast(Sdk):
    name = "vast"

    def vast(self, home, *arguments):
        program = sys.argv[1]
        done = subprocess.run(
            [program, *arguments, "--url",
             self.fake.url(), "--api-key", self.env["VAST_API_KEY"], "--raw"], capture_output=True, text=True,
            timeout=60, env=dict(os.environ, HOME=home))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("failed", done.stdout)
        self.assertNotIn("error", done.stderr)
        return json.loads(done.stdout) if done.stdout.startswith(("[", "{")) else done.stdout

    def test(self):
        with tempfile.TemporaryDirectory() as home:
            cache = pathlib.Path(home, ".cache", "vastai")
            cache.mkdir(parents=True)  # else the command asks its own cloud for them
            (cache / "gpu_names_cache.json").write_text('{"gpu_names": ["Tesla T4"]}')
            offers = self.vast(home, "search", "offers", "gpu_name=Tesla_T4 num_gpus=1")
            self.assertEqual(offers[0]["dph_total"], 0.15)
            made = self.vast(home, "create", "instance", str(offers[0]["id"]), "--image", "i", "--disk", "20",
                             "--label", "x", "--ssh", "--direct")
            self.turn(5)
            id = str(made["new_contract"])
            self.assertEqual([(i["label"], i["actual_status"]) for i in self.vast(home, "show", "instances")],
                             [("x", "running")])
            self.assertEqual(self.vast(home, "show", "instance", id)["id"], made["new_contract"])
            self.vast(home, "stop", "instance", id)
            self.assertEqual(self.vast(home, "show", "instance", id)["cur_state"], "stopped")
            self.vast(home, "destroy", "instance", id, "-y")
            self.assertEqual(self.alive(), 0)
