"""Builds the wheel (PEP 517), with no dependencies.

The wheel holds the package and, where they are built, liballocrig.so and the plug-in liballocrig_torch.so in
allocrig/lib/ and the program in allocrig/bin/: in ALLOCRIG_BUILD, or .build/release of the tree that this folder is in.
The tracer is where the program looks for it, in allocrig/share/. Without libraries and program the wheel is for all
platforms, and the package looks for installed ones (allocrig/_library.py). The command `allocrig` runs the program."""
import base64
import hashlib
import os
import re
import sysconfig
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
BUILT = (("lib", "liballocrig.so.0"), ("lib", "liballocrig_torch.so"), ("bin", "allocrig"))


def version():
    makefile = os.path.join(TREE, "Makefile")
    if os.path.exists(makefile):
        with open(makefile, encoding="utf-8") as file:
            return re.search(r"^VERSION := (\S+)", file.read(), re.M).group(1)
    return "0"


def metadata():
    return f"Metadata-Version: 2.1\nName: allocrig\nVersion: {version()}\nSummary: A test rig for GPU memory " \
           "allocator policies\nLicense: Apache-2.0\nRequires-Python: >=3.8\n"


def files():
    """(name in the wheel, path) of all that it holds."""
    package = os.path.join(HERE, "allocrig")
    for name in sorted(os.listdir(package)):
        if name.endswith(".py"):
            yield f"allocrig/{name}", os.path.join(package, name)
    build = os.environ.get("ALLOCRIG_BUILD") or os.path.join(TREE, ".build", "release")
    for folder, name in BUILT:
        path = os.path.join(build, name)
        if os.path.exists(path):
            yield f"allocrig/{folder}/{name}", os.path.realpath(path)
    tracer = os.path.join(TREE, "workloads", "record", "tracer")
    for part in ("start", "allocrig_tracer"):
        for folder, folders, names in os.walk(os.path.join(tracer, part)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".py", ".tsv")):
                    path = os.path.join(folder, name)
                    yield f"allocrig/share/allocrig/tracer/{os.path.relpath(path, tracer)}", path


def is_built(name):
    return name.startswith(("allocrig/lib/", "allocrig/bin/"))


def tag(names):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"py3-none-{platform}" if any(is_built(name) for name in names) else "py3-none-any"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = f"allocrig-{version()}.dist-info"
    os.makedirs(os.path.join(metadata_directory, name))
    with open(os.path.join(metadata_directory, name, "METADATA"), "w", encoding="utf-8") as file:
        file.write(metadata())
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    held = list(files())
    info = f"allocrig-{version()}.dist-info"
    label = tag([name for name, _ in held])
    contents = []
    for name, path in held:
        with open(path, "rb") as file:
            contents.append((name, file.read()))
    contents.append((f"{info}/METADATA", metadata().encode()))
    contents.append((f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: allocrig\nRoot-Is-Purelib: "
                     f"{'true' if label.endswith('any') else 'false'}\nTag: {label}\n".encode()))
    contents.append((f"{info}/entry_points.txt", b"[console_scripts]\nallocrig = allocrig._traced:main\n"))
    record = f"{info}/RECORD"
    lines = []
    for name, data in contents:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    contents.append((record, ("".join(lines) + f"{record},,\n").encode()))
    wheel = f"allocrig-{version()}-{label}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if is_built(name) else 0o100644) << 16
            archive.writestr(entry, data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("there is no source distribution of the Python package alone: build from the whole tree")
