"""Machine code that is kept between processes: compiled by numba once, and linked without it.

numba takes 0.4 s to load, and the LLVM inside it 0.04 s.  A function has a file of its own.  Its
name tells what it was made of, and for which processor; its first bytes tell whether it is whole.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import llvmlite
import llvmlite.binding as llvm

from secure_bloom.user_cache import is_ours_alone, user_cache

_SOURCES: Final = ("compilation", "entry_points", "kept_code", "plain", "salt", "sbbf", "xxh64")
#: Settings of numba that change what it compiles.
_SETTINGS: Final = ("NUMBA_BOUNDSCHECK", "NUMBA_OPT")
_BESIDE: Final = Path(__file__).parent / "__pycache__"
_DIGEST_SIZE: Final = hashlib.sha256().digest_size


def kept_object(function: str) -> bytes | None:
    """The object file of a function, if one is kept for this processor and is whole."""
    for folder in _folders():
        with suppress(OSError):
            path = folder / _name(function)
            content = path.read_bytes()
            # Of a file that is damaged any byte could be run.
            is_whole = hashlib.sha256(content[_DIGEST_SIZE:]).digest() == content[:_DIGEST_SIZE]
            # Who can write beside the package can write the package.
            if is_whole and (folder == _BESIDE or is_ours_alone(path)):
                return content[_DIGEST_SIZE:]
    return None


def keep_object(function: str, content: bytes) -> None:
    """Keep an object file for later processes, in the first folder where that is allowed."""
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / _name(function), hashlib.sha256(content).digest() + content)
            return


def object_code(function: str, compiled: Any) -> bytes | None:
    """What numba compiled as an object file; None if it calls anything outside of that file."""
    target = _target(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    # numba keeps what returns an error code apart from who calls it.  Inlined, these loops have no
    # errors, and all that numba does about them is left out.
    text = re.sub(r"\bnoinline\b", "nounwind", compiled.inspect_llvm())
    module = llvm.parse_assembly(text.replace(compiled.native_name, function))
    for symbol in (*module.functions, *module.global_variables):
        if not symbol.is_declaration and symbol.name != function:
            symbol.linkage = "internal"
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(3))
    builder.getModulePassManager().run(module, builder)
    outside = [it for it in module.functions if it.is_declaration and it.name[:5] != "llvm."]
    return None if outside or [*module.global_variables] else target.emit_object(module)


class Linked:
    """A function of an object file at its ``address``, as long as this lives."""

    def __init__(self, function: str, content: bytes) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target("", ""))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()
        self.address: int = self._engine.get_function_address(function)


def _target(processor: str, features: str) -> Any:
    # Newer versions begin by themselves, and say so by an error.
    with suppress(RuntimeError):
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(
        cpu=processor, features=features, opt=3, codemodel="jitdefault", jit=True
    )


def _name(function: str) -> str:
    return f"{function}-{_made_of()}.o"


@functools.cache
def _made_of() -> str:
    """What the code is made of, and for which processor."""
    features = llvm.get_host_cpu_features().flatten()
    processor = [llvm.get_default_triple(), llvm.get_host_cpu_name(), features]
    settings = [f"{name}={os.environ.get(name)}" for name in _SETTINGS]
    words = [llvmlite.__version__, *processor, *settings]
    made_of = hashlib.sha256("\n".join(words).encode())
    for source in _SOURCES:
        made_of.update(Path(__file__).with_name(f"{source}.py").read_bytes())
    return made_of.hexdigest()[:32]


def _folders() -> Iterator[Path]:
    """Where numba keeps its own."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        yield Path(named)
        return
    yield _BESIDE
    users = user_cache()
    if users is not None:
        yield users


def _write(path: Path, content: bytes) -> None:
    """Write beside ``path``, then rename: others see all of it or nothing."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)  # whatever the umask is: others may use what is compiled for them
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise
