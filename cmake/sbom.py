"""The bundle's bill of materials in CycloneDX 1.6, made of its manifest and of the licences in it: for bundle.py.

A component for each Debian package with its files, also for those that only the compiler has read (headers, static
libraries) and that no file shows; for the CUDA toolkit whose nvcc made device code; for each file of Rille's own. The
same bundle gives the same text: its serial number is derived from its content, and it has a time only if
SOURCE_DATE_EPOCH names one. docs/manual/bundle.md says how to read it.
"""
import datetime
import json
import os
import re
import uuid
from urllib.parse import quote

NAME = "sbom.cdx.json"  # its path in the bundle
# What cmake/dependencies.cmake looks for: Debian's package of its headers, and the beginning of its libraries' names,
# "" for headers only. A library that the bundle lacks was linked statically.
DEPENDENCIES = {
    "CLI11": ("libcli11-dev", ""),
    "OpenMP": ("libgcc-12-dev", "libgomp.so"),
    "dnnl": ("libdnnl-dev", "libdnnl.so"),
    "fftw3": ("libfftw3-dev", "libfftw3"),
    "fmt": ("libfmt-dev", "libfmt.so"),
    "libarchive": ("libarchive-dev", "libarchive.so"),
    "libcurl": ("libcurl4-openssl-dev", "libcurl.so"),
    "libjpeg": ("libjpeg62-turbo-dev", "libjpeg.so"),
    "libpcre2-8": ("libpcre2-dev", "libpcre2-8.so"),
    "libpng": ("libpng-dev", "libpng16.so"),
    "libuv": ("libuv1-dev", "libuv.so"),
    "libxxhash": ("libxxhash-dev", "libxxhash.so"),
    "luajit": ("libluajit-5.1-dev", "libluajit-5.1.so"),
    "openssl": ("libssl-dev", "libcrypto.so"),
    "pugixml": ("libpugixml-dev", "libpugixml.so"),
    "rapidjson": ("rapidjson-dev", ""),
    "sqlite3": ("libsqlite3-dev", "libsqlite3.so"),
    "zlib": ("zlib1g-dev", "libz.so"),
}
OPTIONAL = ["fftw3"]  # RILLE_FFTW=OFF
# Debian's names of licences that SPDX has under another name. What is in neither list is told as Debian tells it.
SPDX = {
    "Apache-2": "Apache-2.0", "Apache-2.0": "Apache-2.0", "Artistic": "Artistic-1.0", "BSD-2-clause": "BSD-2-Clause",
    "BSD-3-clause": "BSD-3-Clause", "BSD3": "BSD-3-Clause", "BSD-4-Clause-UC": "BSD-4-Clause-UC",
    "Beerware": "Beerware", "CC-BY-4.0": "CC-BY-4.0", "CC0-1.0": "CC0-1.0", "Expat": "MIT", "FSFULLR": "FSFULLR",
    "GFDL-1.2+": "GFDL-1.2-or-later", "GPL-1+": "GPL-1.0-or-later", "GPL-2": "GPL-2.0-only",
    "GPL-2+": "GPL-2.0-or-later", "GPL-3+": "GPL-3.0-or-later", "ISC": "ISC", "LGPL-2": "LGPL-2.0-only",
    "LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.1+": "LGPL-2.1-or-later", "LGPL-3+": "LGPL-3.0-or-later", "MIT": "MIT",
    "MIT/X": "MIT", "MPL-1.1": "MPL-1.1", "MPL-2.0": "MPL-2.0", "OLDAP-2.8": "OLDAP-2.8", "OpenLDAP-2.8": "OLDAP-2.8",
    "X11": "X11", "Zlib": "Zlib", "curl": "curl",
}
SPDX_FOLDED = {name.lower(): of for name, of in SPDX.items()}


def compiled_in(libraries):
    """{package: (dependency, how)} of the dependencies that no library of the bundle shows."""
    found = {}
    for name, (package, library) in DEPENDENCIES.items():
        if not library:
            found[package] = (name, "headers")
        elif name not in OPTIONAL and not any(file.startswith(library) for file in libraries):
            found[package] = (name, "static")
    return found


def licences(text):
    """What a package's copyright file says, as far as a program can read it (Debian's DEP 5): the licences of all of
    its source, of which tests and build scripts may be one."""
    if not re.match(r"\s*Format(-Specification)?:", text):
        return []
    names = set()
    for paragraph in re.split(r"\n[ \t]*\n", text):
        of = re.search(r"^Files:\s*(.*)", paragraph, re.M)
        licence = re.search(r"^License:[ \t]*(\S.*)", paragraph, re.M)
        if of and licence and not of[1].startswith("debian/"):
            names.update(name.strip(" ,") for name in re.split(r"\s+(?:and|or)\s+", licence[1]))
    out = []
    for name in sorted(names - {""}):
        known = SPDX_FOLDED.get(name.lower())
        one = {"license": dict({"id": known} if known else {"name": name}, acknowledgement="declared")}
        if one not in out:
            out.append(one)
    return out


def file_component(row):
    return {"type": "file", "bom-ref": "file:" + row["path"], "name": row["path"],
            "hashes": [{"alg": "SHA-256", "content": row["sha256"]}]}


def properties(**values):
    return [{"name": "rille:" + name, "value": value} for name, value in sorted(values.items()) if value]


def package_component(name, manifest, text):
    rows = [row for row in manifest["files"] if row.get("package") == name]
    libraries = [os.path.basename(row["path"]) for row in rows if row["path"].startswith("lib/")]
    dependency, linkage = compiled_in(library_names(manifest)).get(name, ("", "shared" if libraries else "data"))
    if libraries:
        dependency = " ".join(sorted(wanted for wanted, (_, library) in DEPENDENCIES.items()
                                     if library and any(file.startswith(library) for file in libraries)))
        if dependency == "libcurl":
            linkage = "opened at run time"
    version, system = manifest["packages"][name], manifest["built_on"]
    distribution, _, release = system.partition("-")
    purl = f"pkg:deb/{distribution}/{quote(name)}@{quote(version, safe='.~-')}?arch=amd64" + (
        f"&distro={distribution}-{release}" if release else "")
    out = {"type": "data" if linkage == "data" else "library", "bom-ref": purl, "name": name, "version": version,
           "licenses": licences(text), "purl": purl, "properties": properties(dependency=dependency, linkage=linkage),
           "components": [file_component(row) for row in rows]}
    if not out["licenses"]:
        place = f"share/licenses/{name}"
        named = any(row["path"] == place for row in manifest["files"])
        out["licenses"] = [{"license": {"name": f"see {place}"}}] if named else []
    return {key: value for key, value in out.items() if value != []}


def library_names(manifest):
    return [row["path"][len("lib/"):] for row in manifest["files"] if row["path"].startswith("lib/")]


def cuda_component(version):
    return {"type": "framework", "bom-ref": "cuda-toolkit", "name": "cuda-toolkit", "version": version,
            "supplier": {"name": "NVIDIA"}, "licenses": [{"license": {"name": "NVIDIA CUDA Toolkit EULA"}}],
            "properties": properties(linkage="device code by nvcc, in lib/librille_cuda.so")}


def document(manifest, licence_text):
    """The text. licence_text(package) is the package's copyright file, "" if there is none."""
    manifest = dict(manifest, files=[row for row in manifest["files"] if row["path"] != NAME])
    components = [package_component(name, manifest, licence_text(name)) for name in sorted(manifest["packages"])]
    if manifest["cuda_toolkit"]:
        components.append(cuda_component(manifest["cuda_toolkit"]))
    needs = [component["bom-ref"] for component in components]
    components += [file_component(row) for row in manifest["files"] if "package" not in row]
    rille = {"type": "application", "bom-ref": "rille", "name": "rille", "version": manifest["version"],
             "purl": f"pkg:generic/rille@{manifest['version']}", "licenses": [{"license": {"id": "MIT"}}],
             "properties": properties(build_id=manifest["build_id"], commit=manifest["commit"],
                                      platform=manifest["platform"])}
    content = json.dumps([rille, components], sort_keys=True)
    metadata = {"component": rille}
    if os.environ.get("SOURCE_DATE_EPOCH"):
        instant = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
        metadata["timestamp"] = instant.strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, 'rille-bundle:' + content)}",
        "version": 1,
        "metadata": metadata,
        "components": components,
        "dependencies": [{"ref": "rille", "dependsOn": needs}],
    }, indent=1) + "\n"
