"""The GraphQL side of runpod.py, the only one with bids: HTTP 200 with `errors` where a resolver fails, HTTP 400 where
the query itself is wrong.
"""
from base import Refusal, Reply
from graphql import Parser, QueryError, select

INPUT = set(
    "name imageName gpuTypeId cloudType gpuCount containerDiskInGb volumeInGb volumeMountPath minVcpuCount "
    "minMemoryInGb ports env dockerArgs dataCenterId countryCode supportPublicIp startSsh startJupyter minCudaVersion "
    "networkVolumeId templateId minDownload minUpload volumeKey allowedCudaVersions".split())
COUNTRIES = {"RO": "EU-RO-1", "US": "US-KS-2", "CA": "CA-MTL-1"}


class GraphQL:

    def parse_graphql(self, request):
        body = request.json() or {}
        try:
            self.kind, self.fields = Parser(body.get("query", ""), body.get("variables")).operation()
        except QueryError as e:
            raise Refusal(400, "GRAPHQL_PARSE_FAILED", str(e)) from e
        first = self.fields[0]
        return first[1], first[2].get("input") or {}

    def render_graphql(self, r):
        if r.status in (401, 429) or r.status >= 500:
            return Reply(r.status, dict(errors=[dict(message=r.message, extensions=dict(code=r.code))]),
                         headers=r.headers)
        status = r.status if r.code.startswith("GRAPHQL_") else 200
        return Reply(
            status,
            dict(errors=[dict(message=r.message, extensions=dict(code="RUNPOD" if status == 200 else r.code))],
                 data=None), headers=r.headers)

    def run_graphql(self):
        data = {}
        for alias, name, arguments, below in self.fields:
            resolver = getattr(self, f"{self.kind}_{name}", None)
            if not resolver:
                raise Refusal(400, "GRAPHQL_VALIDATION_FAILED", f'Cannot query field "{name}" on type '
                              f'"{self.kind.capitalize()}".')
            if set(arguments) - {"input"}:
                raise Refusal(400, "GRAPHQL_VALIDATION_FAILED",
                              f"Unknown argument on field {name}: {sorted(arguments)}")
            try:
                data[alias] = select(resolver(arguments.get("input") or {}), below, name)
            except QueryError as e:
                raise Refusal(400, "GRAPHQL_VALIDATION_FAILED", str(e)) from e
        return Reply(200, dict(data=data))

    def fail(self, message):
        return Refusal(400, "RUNPOD", message)

    def query_gpuTypes(self, p):
        return [self.gpu_type(t) for t in self.types.values() if t.count and p.get("id", t.name) == t.name]

    def gpu_type(self, t):

        def lowest(arguments):
            asked = arguments.get("input") or {}
            secure = asked.get("secureCloud", True)
            place = asked.get("dataCenterId") or COUNTRIES.get(asked.get("countryCode"), "EU-RO-1")
            stock = {"NONE": None, "LOW": "Low", "MEDIUM": "Medium", "HIGH": "High"}[self.stock_of(t, place)]
            price = t.on_demand / 1e6 * (1 if secure else 0.8)
            return dict(minimumBidPrice=t.spot / 1e6 if stock else None, uninterruptablePrice=price if stock else None,
                        stockStatus=stock, minVcpu=t.vcpus, minMemory=t.memory_gib, gpuTypeId=t.name, gpuName=t.gpu)

        return dict(id=t.name, displayName=t.gpu, memoryInGb=t.gpu_gib, manufacturer="Nvidia", secureCloud=True,
                    communityCloud=True, securePrice=t.on_demand / 1e6, communityPrice=t.on_demand * 0.8 / 1e6,
                    secureSpotPrice=t.spot / 1e6, communitySpotPrice=t.spot / 1e6, maxGpuCount=t.count, cudaCores=7424,
                    oneWeekPrice=None, oneMonthPrice=None, threeMonthPrice=None, lowestPrice=lowest)

    def pod_fields(self, m):
        body, running = m.facts["body"], m.phase == "running"
        ports = [dict(ip="127.0.0.1", isIpPublic=True, privatePort=22, publicPort=self.world.ssh_port, type="tcp")]
        up, row = int(self.world.now() - m.since) if running else 0, self.types[m.type]
        runtime = dict(uptimeInSeconds=up, ports=ports if "22/tcp" in (body.get("ports") or []) else [], gpus=[])
        status = {"stopping": "EXITED", "stopped": "EXITED", "ending": "TERMINATED"}.get(m.phase, "RUNNING")
        machine = dict(podHostId=m.id + "-64411eb2", gpuDisplayName=row.gpu, location=m.region)
        return dict(id=m.id, name=m.name, imageName=body.get("image", ""), desiredStatus=status,
                    gpuCount=m.facts["count"], costPerHr=m.price / 1e6, machineId="mach-" + m.id[:8],
                    podType="INTERRUPTABLE" if m.spot else "RESERVED",
                    env=[f"{k}={v}" for k, v in (body.get("env") or {}).items()
                         ], machine=machine, containerDiskInGb=body.get("disk", 50), dockerArgs=body.get("args", ""),
                    dockerId=None, lastStatusChange="", port=None, memoryInGb=row.memory_gib,
                    ports=",".join(body.get("ports") or
                                   []), uptimeSeconds=up, vcpuCount=row.vcpus, volumeInGb=body.get("volumeInGb") or 0,
                    volumeMountPath="/workspace", runtime=runtime if running else None)

    def query_pod(self, p):
        m = self.world.machines.get(p.get("podId"))
        return self.pod_fields(m) if m and m.visible() and m.phase != "gone" else None

    def query_myself(self, p):
        volumes = [
            dict(id=t.id, name=t.tags.get("rille-name", ""), size=t.facts["size"], dataCenterId=t.facts["center"])
            for t in self.world.things.values() if "center" in t.facts and t.ended is None
        ]
        return dict(id=f"user_fake{self.seed}", email="someone@example.org", clientBalance=100.0,
                    pubKey="\n".join(self.ssh_keys), networkVolumes=volumes,
                    pods=[self.pod_fields(m) for m in self.listed()])

    def create(self, p, bid, kind):
        for name in set(p) - INPUT - ({"bidPerGpu"} if bid is not None else set()):
            raise Refusal(400, "GRAPHQL_VALIDATION_FAILED", f'Field "{name}" is not defined by type "{kind}".')
        for name in ("imageName", "gpuTypeId"):
            if not p.get(name) and not (name == "imageName" and p.get("templateId")):
                raise self.fail(f"{name} is required")
        if p.get("cloudType", "ALL") not in ("ALL", "SECURE", "COMMUNITY"):
            raise Refusal(400, "GRAPHQL_VALIDATION_FAILED",
                          f'Value "{p["cloudType"]}" does not exist in "CloudTypeEnum" enum.')
        body = dict(image=p.get("imageName", ""), ports=[x for x in p.get("ports", "").split(",") if x],
                    volumeInGb=p.get("volumeInGb"), env={e["key"]: e["value"] for e in p.get("env") or []})
        if p.get("networkVolumeId"):
            path = p.get("volumeMountPath") or "/workspace"
            body["mounts"] = dict(network=[dict(volumeId=p["networkVolumeId"], path=path)])
        centers = [p["dataCenterId"]] if p.get("dataCenterId") else [COUNTRIES[p["countryCode"]]] if p.get(
            "countryCode") in COUNTRIES else sorted(COUNTRIES.values())
        cloud = "SECURE" if p.get("cloudType", "ALL") == "ALL" else p["cloudType"]
        return self.pod_fields(
            self.deploy(p.get("name", "pod"), p["gpuTypeId"], p.get("gpuCount", 1), cloud, centers, bid, body))

    def mutation_podFindAndDeployOnDemand(self, p):
        return self.create(p, None, "PodFindAndDeployOnDemandInput")

    def mutation_podRentInterruptable(self, p):
        if not isinstance(p.get("bidPerGpu"), (int, float)):
            raise self.fail("bidPerGpu is required")
        return self.create(p, round(p["bidPerGpu"] * 1e6), "PodRentInterruptableInput")

    def of(self, p, message):
        m = self.world.machines.get(p.get("podId"))
        if not m or not m.visible() or m.phase == "gone":
            raise self.fail(message)
        return m

    def mutation_podTerminate(self, p):
        self.of(p, "pod not found to terminate").terminate()

    def mutation_podStop(self, p):
        m = self.of(p, "pod not found to stop")
        m.stop()
        return self.pod_fields(m)

    def mutation_podResume(self, p):
        m = self.of(p, "pod not found to resume")
        m.restart()
        return self.pod_fields(m)
