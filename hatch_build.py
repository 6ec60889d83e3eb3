"""Build the C extension: as a hook of hatchling, or in place by ``python hatch_build.py``.

The extension is optional: without a C compiler, and for a free-threaded Python, the package is
installed without it, and numpy does its work.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

NAME = "secure_bloom.kernels._native"
FOLDER = Path("secure_bloom", "kernels", "native")
FLAGS = ["-std=c11", "-O3", "-fwrapv", "-fvisibility=hidden", "-fstack-protector-strong"]
# Without -g0 the flags of Python's own build would add debug information: 239 KB instead of 59.
FORTIFIED = ["-g0", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]


def build_in_place(root: Path, *, strict: bool = False, sanitize: bool = False) -> Path:
    """Compile the extension beside the Python modules and return its path."""
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    # Run, not imported: the package has dependencies that a build does not have.
    sources = runpy.run_path(str(root / FOLDER.with_name("native_sources.py")))
    digest = sources["sources_digest"](root / FOLDER)
    flags = [] if os.name == "nt" else [*FLAGS, *([] if sanitize else FORTIFIED)]
    extra = [*(STRICT if strict else []), *(SANITIZED if sanitize else [])]
    extension = Extension(
        NAME,
        sorted(str(path) for path in (root / FOLDER).glob("*.c")),
        py_limited_api=True,
        define_macros=[
            ("Py_LIMITED_API", "0x030B0000"),
            ("SOURCES", f'"{digest}"'),
        ],
        extra_compile_args=[*flags, *extra],
        extra_link_args=[flag for flag in extra if flag.startswith("-fsanitize")],
    )
    distribution = Distribution({"name": "secure-bloom", "ext_modules": [extension]})
    command = build_ext(distribution)
    with tempfile.TemporaryDirectory() as folder:
        command.build_temp, command.build_lib = folder, folder
        command.force = True
        command.ensure_finalized()
        command.run()
        built = Path(command.get_ext_fullpath(NAME))
        # Renamed into its place: a running process keeps the file that it has mapped.
        target = root / Path(*NAME.split(".")).with_name(built.name)
        new = target.with_name(f"{target.name}.{os.getpid()}.new")
        new.write_bytes(built.read_bytes())
        new.replace(target)
    return target


def reason_not_to_build() -> str | None:
    """Return why this Python gets no extension; None if it gets one."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "a free-threaded Python has no stable ABI"
    return "SECURE_BLOOM_NATIVE=0" if os.environ.get("SECURE_BLOOM_NATIVE") == "0" else None


def try_to_build(root: Path) -> Path | None:
    """Build the extension, or print one line that says why the package works without it."""
    reason = reason_not_to_build()
    if reason is None:
        try:
            return build_in_place(root)
        except Exception as error:  # distutils and compilers raise many kinds
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
    print(f"secure-bloom: the C extension was not built, numpy is used ({reason})", file=sys.stderr)
    return None


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script
    BuildHookInterface = object


class NativeBuildHook(BuildHookInterface):  # type: ignore[misc,valid-type]
    """Hatchling calls this before it packs a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build the extension and give the wheel the tag of what is in it."""
        built = try_to_build(Path(self.root))
        if built is None:
            return
        build_data["artifacts"].append(f"/{built.relative_to(self.root).as_posix()}")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp311-abi3-{platform}"


def main() -> None:
    """Build in place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strict", action="store_true", help="warnings are errors")
    parser.add_argument("--sanitize", action="store_true", help="with ASan and UBSan")
    chosen = parser.parse_args()
    print(build_in_place(Path(__file__).parent, strict=chosen.strict, sanitize=chosen.sanitize))


if __name__ == "__main__":
    main()
