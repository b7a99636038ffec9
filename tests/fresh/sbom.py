#!/usr/bin/env python3
"""The bundle's bill of materials: it is what CycloneDX's schema wants, and names all that is in the bundle.

usage: sbom.py ARCHIVE BILL, by a Python with tests/requirements.txt"""
import json, os, re, subprocess, sys, tarfile
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

top = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(top / "tests/cli"), str(top / "cmake")]
import sbom
from tap import check, finish

# Of cmake/dependencies.cmake: a tool, and a part of the C library.
NOT_LINKED = {"PkgConfig", "Threads"}


def dependencies():
    """Every library that cmake/dependencies.cmake looks for, by the first name that it has there."""
    text = re.sub(r"#.*", "", (top / "cmake/dependencies.cmake").read_text())
    names = set(re.findall(r"find_package\((\w+)", text)) | set(re.findall(r"find_library\(\w+ (\w+)", text))
    for words in re.findall(r"pkg_check_modules\(([^)]*)\)", text):
        names.add([word for word in words.split()[1:] if word not in ("REQUIRED", "IMPORTED_TARGET")][0])
    names |= {header.split("/")[0] for header in re.findall(r"find_path\(\w+ (\S+)", text)}
    return names - NOT_LINKED - {"oneapi"}  # the header of the library dnnl


def files_in(components):
    for component in components:
        if component["type"] == "file":
            yield component["name"], component["hashes"][0]["content"]
        yield from files_in(component.get("components", []))


def refs_in(components):
    for component in components:
        yield component["bom-ref"]
        yield from refs_in(component.get("components", []))


def facts(component):
    return {one["name"]: one["value"] for one in component.get("properties", [])}


def check_parts(bill, manifest):
    parts = {c["name"]: c for c in bill["components"] if c["type"] != "file"}
    told = {name for part in parts.values() for name in facts(part).get("rille:dependency", "").split()}
    check("it names every dependency of the build", dependencies() <= told, sorted(dependencies() - told))
    check("and calls headers what no file shows", facts(parts["rapidjson-dev"])["rille:linkage"] == "headers" and
          facts(parts["libcli11-dev"])["rille:linkage"] == "headers", parts["rapidjson-dev"])
    shared = [name for name, part in parts.items() if facts(part)["rille:linkage"] == "shared"]
    check("libraries are shared ones", {"libc6", "libuv1", "libstdc++6"} <= set(shared), shared)
    alone = [c["name"] for c in bill["components"] if c["type"] == "file" and c["name"].startswith("lib/")]
    check("each library belongs to a package, but Rille's own", alone == ["lib/librille_cuda.so"], alone)
    wrong = {name: part for name, part in parts.items() if name != "cuda-toolkit" and (
        part["version"] != subprocess.run(["dpkg-query", "-W", "-f=${Version}\n", name], capture_output=True,
                                          text=True).stdout.split()[0] or
        not part["purl"].startswith("pkg:deb/") or not part["licenses"])}
    check("each package has its version, its address and a licence", not wrong, wrong)
    licence = {name: [one["license"].get("id") for one in part["licenses"]] for name, part in parts.items()}
    check("licences are SPDX's where a program can read them", licence["libfftw3-double3"] == ["GPL-2.0-or-later"] and
          licence["rapidjson-dev"] == ["BSD-3-Clause", "MIT"] and licence["libc6"] == [None], licence)
    check("the CUDA toolkit is named if it made images", ("cuda-toolkit" in parts) == bool(manifest["cuda_toolkit"]))


def main():
    archive, beside = sys.argv[1:]
    with tarfile.open(archive) as tar:
        inside = {name.split("/", 1)[1]: tar.extractfile(name).read() for name in tar.getnames()
                  if re.search(r"/(MANIFEST\.json|sbom\.cdx\.json|share/licenses/.*)$", name)}
    text = inside["sbom.cdx.json"].decode()
    bill, manifest = json.loads(text), json.loads(inside["MANIFEST.json"])
    check("the one in the bundle is the one beside it", text == Path(beside).read_text())
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    check("it is what the schema of CycloneDX 1.6 wants", not wrong, wrong)
    check("it is about this build", bill["metadata"]["component"]["version"] == manifest["version"] and
          facts(bill["metadata"]["component"])["rille:build_id"] == manifest["build_id"], bill["metadata"])

    named = sorted(files_in(bill["components"]))
    files = sorted((row["path"], row["sha256"]) for row in manifest["files"] if row["path"] != "sbom.cdx.json")
    check("it names each file of the manifest but itself, once, with its SHA-256", named == files,
          sorted(set(named) ^ set(files))[:5])
    refs = list(refs_in(bill["components"]))
    check("no two parts have one name", len(refs) == len(set(refs)))
    needs = bill["dependencies"][0]["dependsOn"]
    check("what Rille depends on is there", needs and set(needs) <= set(refs), needs)
    check_parts(bill, manifest)

    def again():
        return sbom.document(manifest, lambda name: inside.get(f"share/licenses/{name}", b"").decode(errors="replace"))

    epoch = os.environ.pop("SOURCE_DATE_EPOCH", None)
    check("the same bundle gives the same text", again() == text or epoch)
    os.environ["SOURCE_DATE_EPOCH"] = "1700000000"
    dated = json.loads(again())
    check("it has a time where SOURCE_DATE_EPOCH names one", dated["serialNumber"] == bill["serialNumber"] and
          dated["metadata"]["timestamp"] == "2023-11-14T22:13:20Z", dated["metadata"])
    manifest["files"][0]["sha256"] = "0" * 64
    check("another content has another serial number", json.loads(again())["serialNumber"] != bill["serialNumber"])
    finish()


main()
