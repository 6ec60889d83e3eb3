"""Write gcm_vectors.json: NIST's GCM decryption vectors of the shape that Parquet's modules have.

    pip install cryptography-vectors
    python -m tests.encryption.make_gcm_vectors

They are those of `cryptography-vectors` with a nonce of 96 and a tag of 128 bits: some of each
length of key, text and AAD, among them some that must fail.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("gcm_vectors.json")
_SIZES = (128, 192, 256)
_OF_EACH_SHAPE = 2


def main() -> None:
    """Read the package's files and write ours."""
    cases = [case for size in _SIZES for case in _chosen(_cases(size))]
    version = importlib.metadata.version("cryptography-vectors")
    document = {
        "source": f"cryptography-vectors {version}, ciphers/AES/GCM/gcmDecrypt*.rsp (NIST CAVS)",
        "cases": cases,
    }
    TARGET.write_text(json.dumps(document, indent=0) + "\n")


def _cases(size: int) -> Iterator[dict[str, Any]]:
    folder = resources.files("cryptography_vectors") / "ciphers" / "AES" / "GCM"
    text = (folder / f"gcmDecrypt{size}.rsp").read_text()
    shape: dict[str, str] = {}
    for block in text.split("\n\n"):
        lines = [line.strip() for line in block.splitlines() if line and not line.startswith("#")]
        shape |= dict(line[1:-1].split(" = ") for line in lines if line.startswith("["))
        fields = {
            name.strip(): value.strip()
            for name, _, value in (line.partition("=") for line in lines)
            if not name.startswith("[")
        }
        if "CT" in fields and shape["IVlen"] == "96" and shape["Taglen"] == "128":
            yield {
                "key": fields["Key"],
                "nonce": fields["IV"],
                "ciphertext": fields["CT"],
                "aad": fields["AAD"],
                "tag": fields["Tag"],
                "text": None if "FAIL" in fields or "FAIL" in lines else fields["PT"],
            }


def _chosen(cases: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen: dict[object, int] = {}
    for case in cases:
        shape = (len(case["ciphertext"]), len(case["aad"]), case["text"] is None)
        seen[shape] = seen.get(shape, 0) + 1
        if seen[shape] <= _OF_EACH_SHAPE:
            yield case


if __name__ == "__main__":
    main()
