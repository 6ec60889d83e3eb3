"""One target in a process of its own, whose death is a finding too: bounds checks on, memory bound.

    python -m campaigns.fuzzing.child TARGET TRIALS SEED [--coverage]

Prints one JSON document: how many inputs were tried, and the failures.  ``--coverage`` lets atheris
choose the inputs by the code that they reach.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

#: No input takes longer on the processor (load of others is no hang), and no target more memory.
SECONDS, MEMORY = 5, 1 << 30
#: Inputs between two looks at the memory.
_BATCH = 100
#: So many seconds for a batch: what waits for ever uses no processor, and compiled code lets no
#: signal through.
_BATCH_SECONDS = 600
#: As many failures tell enough.
_MOST = 20
#: What runs into it is told as what it is, before the system kills the process.
_ADDRESSES = 16 << 30
CRASHES = Path(__file__).parents[1] / "tests" / "crashes"


class HangError(Exception):
    """An input took too long."""


def main(arguments: list[str]) -> int:
    """Run one target; 0 whatever was found."""
    name, trials, seed = arguments[0], int(arguments[1]), int(arguments[2])
    # AddressSanitizer reserves far more addresses than it uses.
    if not is_sanitized():
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    run = _by_coverage if "--coverage" in arguments else _by_mutation
    return run(name, trials, seed)


def is_sanitized() -> bool:
    """Return whether this process, and those that it starts, run under AddressSanitizer."""
    return "asan" in os.environ.get("LD_PRELOAD", "")


def _by_mutation(name: str, trials: int, seed: int) -> int:
    from campaigns.fuzzing.targets import TARGETS

    target = TARGETS[name]
    failures: dict[str, str] = {}
    done = 0
    every = inputs(name, seed)
    for seed_input in target.seeds():
        attempt(name, target.run, seed_input, failures)
    before = _memory()
    signal.signal(signal.SIGPROF, _hangs)
    while done < trials and len(failures) < _MOST:
        faulthandler.dump_traceback_later(_BATCH_SECONDS, exit=True)
        for _ in range(min(_BATCH, trials - done)):
            in_time(name, target.run, next(every), failures)
            done += 1
        if _memory() - before > MEMORY:
            failures["memory"] = f"{name}: more than 1 GiB of memory after {done:,} inputs"
            break
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"trials": done, "failures": list(failures.values()), "memory": _memory()}))
    return 0


def inputs(name: str, seed: int) -> Iterator[bytes]:
    """The inputs of a target, without end."""
    from campaigns.fuzzing.mutator import Mutator
    from campaigns.fuzzing.targets import TARGETS
    from secure_bloom.errors import SecureBloomError
    from testing.thrift import trees

    target = TARGETS[name]
    seeds = target.seeds()
    # To load a tree again takes a tenth of decoding it again.
    trees_of_seeds = [pickle.dumps(trees.decode(it)[0]) for it in seeds] if target.is_tree else []
    mutator = Mutator(seeds, seed, is_text=target.is_text)
    number = 0
    while True:
        if not target.is_tree:
            yield mutator.input()
            continue
        number += 1
        try:
            yield trees.encode(mutator.tree(pickle.loads(trees_of_seeds[number % len(seeds)])))
        except (SecureBloomError, TypeError, AttributeError, ValueError, OverflowError):
            # A structure that cannot be written is no input.
            continue


def in_time(
    name: str, run: Callable[[bytes], object], data: bytes, failures: dict[str, str]
) -> None:
    """:func:`attempt` of an input that may take SECONDS; SIGPROF must be that of hangs."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        attempt(name, run, data, failures)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def attempt(
    name: str, run: Callable[[bytes], object], data: bytes, failures: dict[str, str]
) -> None:
    """Feed one input; what is no error of ours goes into ``failures``, once for each place."""
    from secure_bloom.errors import SecureBloomError

    try:
        run(data)
    except SecureBloomError:
        pass
    except Exception as error:
        place = _place(error)
        if place not in failures:
            failures[place] = f"{name}: {type(error).__name__} at {place}, {_kept(name, data)}"


def _place(error: BaseException) -> str:
    """The innermost line of ours that the error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "secure_bloom" in f.filename]
    return f"{type(error).__name__} {ours[-1] if ours else '?'}"


def _kept(name: str, data: bytes) -> str:
    """The input, in a file that becomes a test."""
    CRASHES.mkdir(parents=True, exist_ok=True)
    path = CRASHES / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    return f"input in {path.name}"


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise HangError(f"an input took longer than {SECONDS} s")


def _by_coverage(name: str, trials: int, seed: int) -> int:
    import atheris

    with atheris.instrument_imports(include=["secure_bloom"]):
        from campaigns.fuzzing.targets import TARGETS
    target = TARGETS[name]
    failures: dict[str, str] = {}
    count = 0

    def one(data: bytes) -> None:
        nonlocal count
        count += 1
        attempt(name, target.run, data, failures)
        if count == trials:
            sys.stdout.write(
                json.dumps(
                    {"trials": count, "failures": list(failures.values()), "memory": _memory()}
                )
            )
            sys.stdout.flush()
            os._exit(0)

    folder = Path(os.environ["FUZZ_CORPUS"])
    for number, data in enumerate(target.seeds()):
        (folder / f"seed{number}").write_bytes(data)
        # Compiling kernels takes longer than an input may.
        attempt(name, target.run, data, failures)
    options = [f"-runs={2 * trials}", f"-seed={seed + 1}", f"-timeout={SECONDS}", "-max_len=4096"]
    options += ["-rss_limit_mb=1024", "-verbosity=0", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *options, str(folder)], one)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
