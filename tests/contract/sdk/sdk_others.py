"""The SDKs of Kubernetes, Azure and Google rent from the fakes."""
import json

from sdk_base import DATA, Sdk


class Kubernetes(Sdk):
    name = "kubernetes"

    def api(self, kind):
        from kubernetes import client, config
        return kind(config.new_client_from_config(config_file=self.env["KUBECONFIG"])) if kind else client

    def test(self):
        from kubernetes import client as k, watch
        batch, core = self.api(k.BatchV1Api), self.api(k.CoreV1Api)

        def job(name):
            container = k.V1Container(name="main", image="i", command=["sleep", "9"],
                                      resources=k.V1ResourceRequirements(limits={"nvidia.com/gpu": "1"}))
            spec = k.V1PodSpec(
                restart_policy="Never", containers=[container],
                tolerations=[k.V1Toleration(key="nvidia.com/gpu", operator="Exists",
                                            effect="NoSchedule")], node_selector={"nvidia.com/gpu.product": "Tesla-T4"})
            return k.V1Job(
                api_version="batch/v1", kind="Job", metadata=k.V1ObjectMeta(name=name, labels={"rille": "x"}),
                spec=k.V1JobSpec(
                    backoff_limit=0, active_deadline_seconds=3600,
                    template=k.V1PodTemplateSpec(metadata=k.V1ObjectMeta(labels={"rille": "x"}), spec=spec)))

        for n in range(3):
            made = batch.create_namespaced_job("default", job(f"j{n}"))
        self.assertTrue(made.metadata.uid)
        with self.assertRaises(k.exceptions.ApiException) as got:
            batch.create_namespaced_job("default", job("j0"))
        self.assertEqual((got.exception.status, "AlreadyExists" in got.exception.body), (409, True))
        self.turn(5)
        found, more = [], None
        while True:
            page = batch.list_namespaced_job("default", label_selector="rille=x", limit=2, _continue=more)
            found += [j.metadata.name for j in page.items]
            more = page.metadata._continue
            if not more:
                break
        self.assertEqual(found, ["j0", "j1", "j2"])
        pods = core.list_namespaced_pod("default", label_selector="job-name=j0").items
        self.assertEqual((pods[0].status.phase, pods[0].spec.node_name), ("Running", "t4-0"))
        self.assertEqual(len([n for n in core.list_node().items if "nvidia.com/gpu" in n.status.allocatable]), 5)
        events = watch.Watch().stream(core.list_namespaced_pod, "default", resource_version="1001", timeout_seconds=1,
                                      label_selector="job-name=j0")
        self.assertEqual([e["type"] for e in events][:2], ["ADDED", "MODIFIED"])
        for n in range(3):
            batch.delete_namespaced_job(f"j{n}", "default", propagation_policy="Background")
        self.turn(5)
        self.assertEqual(self.alive(), 0)


class Azure(Sdk):
    name = "azure"

    def client(self):
        import time, urllib.parse
        from azure.core.credentials import AccessToken
        from azure.core.pipeline.policies import BearerTokenCredentialPolicy
        from azure.mgmt.compute import ComputeManagementClient

        class Login:
            """Azure's own credential wants https; the request is the same."""

            def get_token(inner, *scopes, **_):
                form = dict(grant_type="client_credentials", client_id=self.env["AZURE_CLIENT_ID"],
                            client_secret=self.env["AZURE_CLIENT_SECRET"],
                            scope="https://management.azure.com/.default")
                got = self.fake.send("POST", f"/{self.env['AZURE_TENANT_ID']}/oauth2/v2.0/token",
                                     {"Content-Type": "application/x-www-form-urlencoded"},
                                     urllib.parse.urlencode(form).encode())
                return AccessToken(json.loads(got[2])["access_token"], int(time.time()) + 3599)

        class Plain(BearerTokenCredentialPolicy):

            def on_request(inner, request):
                request.context.options["enforce_https"] = False
                super().on_request(request)

        scope = "https://management.azure.com/.default"
        return ComputeManagementClient(Login(), self.env["AZURE_SUBSCRIPTION_ID"], base_url=self.fake.url(),
                                       polling_interval=0.05, api_version="2024-07-01",
                                       authentication_policy=Plain(Login(), scope))

    def test(self):
        from azure.core.exceptions import HttpResponseError
        client, group = self.client(), self.settings["resource_group"]
        base = f"/subscriptions/{self.settings['subscription']}/resourceGroups/{group}/providers/Microsoft.Network/"

        def nic(name):
            headers = {
                "Authorization": "Bearer " + self.fake.state()["secrets"][-1], "Content-Type": "application/json"
            }
            body = json.dumps(
                dict(
                    location="eastus", properties=dict(
                        ipConfigurations=[dict(name="a", properties=dict(subnet=dict(id=self.settings["subnet"])))])))
            self.fake.send("PUT", base + f"networkInterfaces/{name}?api-version=2023-09-01", headers, body.encode())
            return base + "networkInterfaces/" + name

        def order(name, size="Standard_NC4as_T4_v3"):
            return dict(
                location="eastus", tags={"rille-lease": "x"}, properties=dict(
                    hardwareProfile=dict(vmSize=size),
                    storageProfile=dict(imageReference=self.settings["image"],
                                        osDisk=dict(createOption="FromImage", deleteOption="Delete", diskSizeGB=128)),
                    osProfile=dict(computerName=name, adminUsername="ubuntu", customData=DATA), networkProfile=dict(
                        networkInterfaces=[dict(id=nic(name), properties=dict(primary=True, deleteOption="Delete"))]),
                    priority="Spot", evictionPolicy="Delete", billingProfile=dict(maxPrice=-1)))

        self.assertGreater(len(list(client.resource_skus.list(filter="location eq 'eastus'"))), 5)
        for n in range(3):
            vm = client.virtual_machines.begin_create_or_update(group, f"vm{n}", order(f"vm{n}")).result()
        self.assertEqual((vm.name, vm.provisioning_state), ("vm2", "Succeeded"))
        self.fake.control("set", page_size=2)
        self.assertEqual([v.name for v in client.virtual_machines.list(group)], ["vm0", "vm1", "vm2"])
        view = client.virtual_machines.instance_view(group, "vm0")
        self.assertEqual([s.code for s in view.statuses], ["ProvisioningState/succeeded", "PowerState/running"])
        self.fake.control("fault", kind="capacity", operation="putVirtualMachine")
        with self.assertRaises(HttpResponseError) as got:
            client.virtual_machines.begin_create_or_update(group, "full", order("full")).result()
        self.assertIn("AllocationFailed", str(got.exception))
        usages = list(client.usage.list("eastus"))
        self.assertEqual(usages[0].name.value, "cores")
        self.fake.control("set", end=0.1)
        for name in ("vm0", "vm1", "vm2", "full"):
            client.virtual_machines.begin_delete(group, name, force_deletion=True).result()
        self.assertEqual(self.alive(), 0)


class Gcp(Sdk):
    name = "gcp"

    def test(self):
        from google.api_core.exceptions import Conflict, NotFound
        from google.auth.transport.requests import Request
        from google.cloud import compute_v1 as c
        from google.cloud.compute_v1.services.instances.transports.rest import InstancesRestTransport
        from google.cloud.compute_v1.services.zone_operations.transports.rest import ZoneOperationsRestTransport
        from google.oauth2.service_account import Credentials
        credentials = Credentials.from_service_account_file(self.env["GOOGLE_APPLICATION_CREDENTIALS"],
                                                            scopes=["https://www.googleapis.com/auth/cloud-platform"])
        credentials.refresh(Request())
        self.assertTrue(credentials.token.startswith("ya29."))
        client = c.InstancesClient(
            transport=InstancesRestTransport(host=self.fake.host(), url_scheme="http", credentials=credentials))
        operations = c.ZoneOperationsClient(
            transport=ZoneOperationsRestTransport(host=self.fake.host(), url_scheme="http", credentials=credentials))
        where = dict(project=self.settings["project"], zone="us-central1-a")

        def order(name):
            return c.Instance(
                name=name, machine_type="zones/us-central1-a/machineTypes/g2-standard-4", labels={"rille": "x"}, disks=[
                    c.AttachedDisk(
                        boot=True, auto_delete=True,
                        initialize_params=c.AttachedDiskInitializeParams(source_image=self.settings["image"],
                                                                         disk_size_gb=100, disk_type=(
                                                                             "zones/us-central1-a/diskTypes/pd-ssd")))
                ], network_interfaces=[
                    c.NetworkInterface(network="global/networks/default",
                                       access_configs=[c.AccessConfig(type_="ONE_TO_ONE_NAT")])
                ], scheduling=c.Scheduling(on_host_maintenance="TERMINATE", automatic_restart=False,
                                           provisioning_model="SPOT", instance_termination_action="DELETE",
                                           max_run_duration=c.Duration(seconds=3600)),
                metadata=c.Metadata(items=[c.Items(key="startup-script", value="#!/bin/sh")]))

        def insert(name, id):
            request = c.InsertInstanceRequest(**where, instance_resource=order(name),
                                              request_id=f"6f9619ff-8b86-4011-b42d-00c04fc964f{id}")
            return client.insert_unary(request)

        for n in range(3):
            first = insert(f"vm{n}", n)
            self.assertEqual(insert(f"vm{n}", n).name, first.name)
        with self.assertRaises(Conflict):
            insert("vm0", 9)
        self.turn(5)
        told = operations.get(operation=first.name, **where)
        self.assertEqual(told.status, c.Operation.Status.DONE)
        self.assertEqual(client.get(instance="vm0", **where).status, "RUNNING")
        self.fake.control("set", page_size=2)
        found = client.aggregated_list(
            c.AggregatedListInstancesRequest(project=where["project"], filter="labels.rille=x"))
        self.assertEqual([i.name for _, scope in found for i in scope.instances], ["vm0", "vm1", "vm2"])
        self.fake.control("fault", kind="capacity", operation="insertInstance")
        full = insert("full", 5)
        self.turn(5)
        error = operations.get(operation=full.name, **where).error.errors[0].code
        self.assertEqual(error, "ZONE_RESOURCE_POOL_EXHAUSTED")
        for n in range(3):
            client.delete_unary(instance=f"vm{n}", **where)
        self.turn(5)
        with self.assertRaises(NotFound):
            client.get(instance="vm0", **where)
        self.assertEqual(self.alive(), 0)
