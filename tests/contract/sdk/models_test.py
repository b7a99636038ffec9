"""The vendors' own models are the judge of the fakes: what the drivers send, and what the fakes answer, is held against
them. usage: models_test.py CONTRACT [NAME ..], with a Python that has the SDKs (tests/requirements-sdk.txt).

The contract runs on each fake, which writes down each request and answer that no fault has touched. Checked are names,
members that must be there, values of enumerations, and lengths that a model states. Azure's model is of one API
version. Not checked: aws's answers, and Azure's. Each comparison is counted by the model's name: a model in COMPARED
that was compared with nothing fails the test, because then a pattern here fits no call any more.
"""
import collections, json, os, pathlib, re, subprocess, sys, tempfile, typing, unittest

CONTRACT = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
PYTHON = os.environ.get("RILLE_FAKE_PYTHON", "python3")


def recorded(name):
    """Each request and answer of the provider's contract, once."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "calls")
        environment = dict(os.environ, RILLE_FAKE=name, RILLE_FAKE_RECORD=str(file), RILLE_FAKE_PYTHON=PYTHON)
        cases = f"offers*,a life*,spot*,quotas*,check*,resize*,rent*,price history*,{name}: *"
        ran = subprocess.run([CONTRACT, cases], check=False, capture_output=True, env=environment, timeout=900,
                             text=True)
        if not file.exists():
            raise RuntimeError(ran.stdout)
        return [json.loads(line) for line in sorted(set(file.read_text().splitlines()))]


class Models:
    name, COMPARED = "", ()

    def test(self):
        self.compared = collections.Counter()
        problems = set()
        for call in recorded(self.name):
            if call["status"] < 400:
                problems |= {f"{call['operation'] or call['path']}: {p}" for p in self.problems(call)}
        self.assertEqual(sorted(problems), [])
        self.assertEqual([model for model in self.COMPARED if not self.compared[model]], [], dict(self.compared))

    def problems(self, call):
        raise NotImplementedError

    def compare(self, model, value, shape, path):
        """What `held` finds in a value that is not empty; counted."""
        self.compared[model] += bool(value)
        return list(self.held(value, shape, path))


class Aws(Models, unittest.TestCase):
    name = "aws"
    COMPARED = ("RunInstances", "DescribeInstances", "TerminateInstances", "DescribeSpotPriceHistory", "StopInstances",
                "ModifyInstanceAttribute", "StartInstances")

    def problems(self, call):
        import botocore.session
        from urllib.parse import parse_qsl
        if not hasattr(Aws, "model"):
            Aws.model = botocore.session.get_session().get_service_model("ec2")
        if call["operation"] not in Aws.model.operation_names:
            return []
        tree = {}
        for key, value in parse_qsl(call["body"], keep_blank_values=True) + call["query"]:
            at, parts = tree, key.split(".")
            for part in parts[:-1]:
                at = at.setdefault(part, {})
            at[parts[-1]] = value
        for other in ("Action", "Version"):
            tree.pop(other, None)
        return self.compare(call["operation"], tree, Aws.model.operation_model(call["operation"]).input_shape, "")

    def held(self, value, shape, path):
        if shape.type_name == "structure":
            if not isinstance(value, dict):
                yield f"{path} is no structure"
                return
            names = {}
            for name, member in shape.members.items():
                written = member.serialization.get("queryName") or member.serialization.get("name", name)
                names[written[0].upper() + written[1:]] = (name, member)
            given = {names[key][0] for key in value if key in names}
            yield from (f"{path}.{key} is not known" for key in value if key not in names)
            yield from (f"{path}.{name} is missing" for name in shape.required_members if name not in given)
            for key in value:
                if key in names:
                    yield from self.held(value[key], names[key][1], f"{path}.{key}")
        elif shape.type_name == "list":
            for key in value if isinstance(value, dict) else ():
                yield from [] if key.isdigit() else [f"{path}.{key} is no index"]
                yield from self.held(value[key], shape.member, f"{path}.N")
        elif isinstance(value, dict):
            yield f"{path} is a {shape.type_name}"
        elif getattr(shape, "enum", None) and value not in shape.enum:
            yield f"{path} = {value} is none of {shape.enum[:9]}"
        elif shape.type_name in ("integer", "long") and not re.fullmatch(r"-?\d+", value):
            yield f"{path} = {value} is no number"
        elif shape.type_name == "boolean" and value not in ("true", "false"):
            yield f"{path} = {value} is neither true nor false"


class Gcp(Models, unittest.TestCase):
    name = "gcp"
    COMPARED = ("POST Instance", "POST Firewall", "POST Disk", "POST AttachedDisk", "Instance", "Disk", "Operation")
    SENT = dict(instances="Instance", firewalls="Firewall", disks="Disk", attachDisk="AttachedDisk")

    def problems(self, call):
        from google.cloud import compute_v1
        out = []
        sent = self.SENT.get(call["path"].rpartition("/")[2]) if call["method"] == "POST" else None
        texts = [("POST ", sent, call["body"])] if sent else []
        if call["answer"].startswith("{"):
            kind = json.loads(call["answer"]).get("kind", "")
            if kind.startswith("compute#"):
                texts.append(("", kind[8].upper() + kind[9:], call["answer"]))
        for what, name, text in texts:
            cls = getattr(compute_v1, name, None)
            if not cls:
                out.append(f"there is no {name}")
                continue
            out += self.compare(what + name, json.loads(text), cls.pb(cls()).DESCRIPTOR, name)
        return out

    def held(self, value, descriptor, path):
        fields = {f.json_name: f for f in descriptor.fields}
        enums = {e.name: {v.name for v in e.values} for e in descriptor.enum_types}
        for key, inner in value.items():
            field = fields.get(key)
            if not field:
                yield f"{path}.{key} is not known"
                continue
            options = enums.get(field.name.title().replace("_", ""))
            entry = field.message_type if field.message_type and field.message_type.GetOptions().map_entry else None
            several = inner.values() if entry else inner if isinstance(inner, list) else [inner]
            message = entry.fields_by_name["value"].message_type if entry else field.message_type
            for one in several:
                if message and isinstance(one, dict):
                    yield from self.held(one, message, f"{path}.{key}")
                elif isinstance(one, dict):
                    yield f"{path}.{key} is no message"
                elif options and one not in options:
                    yield f"{path}.{key} = {one} is none of the model's"


class Huawei(Models, unittest.TestCase):
    name = "huawei"
    BODIES = {
        "createServers": "CreatePostPaidServersRequestBody", "deleteServers": "DeleteServersRequestBody",
        "resizeServer": "ResizePostPaidServerRequestBody"
    }
    QUERIES = {"listServers": "ListServersDetailsRequest", "listFlavors": "ListFlavorsRequest"}
    COMPARED = (*BODIES, *QUERIES, "answer of listServers")

    def problems(self, call):
        import huaweicloudsdkecs.v2 as model
        self.model = model
        out = []
        if call["operation"] in self.BODIES:
            out += self.compare(call["operation"], json.loads(call["body"]), self.BODIES[call["operation"]], "")
        if call["operation"] in self.QUERIES:
            known = getattr(model, self.QUERIES[call["operation"]]).attribute_map.values()
            self.compared[call["operation"]] += bool(call["query"])
            out += [f"?{key} is not known" for key, _ in call["query"] if key not in known]
        if call["operation"] == "listServers":
            told = json.loads(call["answer"])
            self.compared["answer of listServers"] += bool(told.get("servers"))
            out += self.held(told, "ListServersDetailsResponse", "answer")
        return out

    def held(self, value, type, path):
        inner = re.fullmatch(r"list\[(.+)\]", type)
        cls = getattr(self.model, type, None)
        if inner:
            for one in value or []:
                yield from self.held(one, inner[1], path + "[]")
        elif cls and isinstance(value, dict):
            names = {written: name for name, written in cls.attribute_map.items()}
            for key, one in value.items():
                if key not in names:
                    yield f"{path}.{key} is not known"
                    continue
                told = getattr(cls, names[key]).__doc__ or ""
                most = re.search(r"最大长度(\d+)个", told)
                if most and isinstance(one, str) and len(one) > int(most[1]):
                    yield f"{path}.{key} is longer than {most[1]}: {one}"
                yield from self.held(one, cls.openapi_types[names[key]], f"{path}.{key}")


class Azure(Models, unittest.TestCase):
    name = "azure"
    KINDS = {"virtualMachines": "VirtualMachine"}
    COMPARED = tuple(KINDS.values())
    OPEN = ("vmSize", )  # the model's list of sizes ends years ago

    def problems(self, call):
        from azure.mgmt.compute import models
        kind = re.search(r"/providers/Microsoft[.]Compute/(\w+)/[^/]+$", call["path"])
        if call["method"] not in ("PUT", "PATCH") or not kind or kind[1] not in self.KINDS:
            return []
        model = self.KINDS[kind[1]]
        return self.compare(model, json.loads(call["body"]), getattr(models, model), "")

    def held(self, value, cls, path):
        from azure.mgmt.compute import models
        import azure.mgmt.compute as package
        names = {field._rest_name: name for name, field in cls()._attr_to_rest_field.items()}
        hints = typing.get_type_hints(cls, vars(package) | vars(models) | {"_models": models})
        for key, one in value.items():
            if key not in names:
                yield f"{path}.{key} is not known"
                continue
            inner = [hints[names[key]]]
            while any(typing.get_args(i) for i in inner):
                inner = [a for i in inner for a in (typing.get_args(i) or [i])]
            several = one if isinstance(one, list) else [one]
            for i in inner:
                if hasattr(i, "__members__") and key not in self.OPEN:
                    yield from (f"{path}.{key} = {x} is none of the model's" for x in several
                                if isinstance(x, str) and x not in [m.value for m in i])
                elif isinstance(i, type) and hasattr(i, "as_dict"):
                    for x in several:
                        if isinstance(x, dict):
                            yield from self.held(x, i, f"{path}.{key}")


if __name__ == "__main__":
    unittest.main()
