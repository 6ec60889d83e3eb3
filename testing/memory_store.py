"""As much of S3 as the benchmarks need, in memory: a store that takes no time of its own.

moto takes half a minute to copy a part of 1 GiB, so what is measured with it is moto.  Whether the
protocol is right is shown by the tests, on moto and on ministack.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

_PAGE = 1000
_WRITTEN = formatdate(1_767_225_600, usegmt=True)
_XML = "<?xml version='1.0' encoding='UTF-8'?>"


@dataclass(frozen=True, slots=True)
class Stored:
    """An object: pieces that other objects may share, and its entity tag."""

    pieces: tuple[memoryview, ...]
    etag: str

    @property
    def size(self) -> int:
        """All its bytes."""
        return sum(map(len, self.pieces))

    def cut(self, start: int, end: int) -> list[memoryview]:
        """The bytes from start to end, not copied."""
        found, offset = [], 0
        for piece in self.pieces:
            first, last = max(start - offset, 0), min(end - offset, len(piece))
            if first < last:
                found.append(piece[first:last])
            offset += len(piece)
        return found


@dataclass(slots=True)
class Answer:
    """Status, headers and body."""

    status: int = 200
    fields: dict[str, str] = field(default_factory=dict)
    body: list[memoryview] = field(default_factory=list)


class MemoryStore:
    """Buckets need not be made; keys are kept with their bucket before them."""

    def __init__(self) -> None:
        self._objects: dict[str, Stored] = {}
        self._uploads: dict[str, dict[int, Stored]] = {}
        self._tags = itertools.count(1)

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Store an object without a request."""
        self._objects[path] = self._stored(pieces)

    def answer(self, method: str, target: str, fields: Mapping[str, str], body: bytes) -> Answer:
        """What S3 would answer."""
        path, _, query = target.partition("?")
        key = unquote(path).strip("/")
        asked = dict(parse_qsl(query, keep_blank_values=True))
        if "/" not in key:
            return self._of_bucket(key, asked)
        if method in ("GET", "HEAD"):
            return self._get(method, key, fields)
        if method == "DELETE":
            self._uploads.pop(asked.get("uploadId", ""), None)
            return Answer(status=204)
        if "uploads" in asked:
            upload = str(next(self._tags))
            self._uploads[upload] = {}
            return _xml(
                f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId>"
                "</InitiateMultipartUploadResult>"
            )
        if "partNumber" in asked:
            return self._part(asked, fields, body)
        if "uploadId" in asked:
            return self._complete(key, asked["uploadId"], fields, body)
        return self._put(key, self._stored([body]), fields)

    def _of_bucket(self, bucket: str, asked: Mapping[str, str]) -> Answer:
        if "ownershipControls" in asked:
            return _xml(
                "<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership>"
                "</Rule></OwnershipControls>"
            )
        if "list-type" in asked:
            return self._listing(bucket, asked)
        return Answer(fields={"x-amz-bucket-region": "us-east-1"})

    def _listing(self, bucket: str, asked: Mapping[str, str]) -> Answer:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = asked.get("continuation-token") or asked.get("start-after", "")
        most = int(asked.get("max-keys", _PAGE))
        keys, folders = [], set()
        for path in sorted(self._objects):
            key = path.removeprefix(bucket + "/")
            if key == path or not key.startswith(prefix) or key <= after:
                continue
            inner, mark, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if mark:
                folders.add(prefix + inner + mark)
            else:
                keys.append(key)
        shown = keys[:most]
        more = len(keys) > most
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{self._objects[f'{bucket}/{key}'].size}</Size>"
            f"<ETag>{self._objects[f'{bucket}/{key}'].etag}</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in shown
        )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        )
        token = (
            f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more else ""
        )
        return _xml(
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(shown) + len(folders)}</KeyCount><MaxKeys>{most}</MaxKeys>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{found}{common}"
            "</ListBucketResult>"
        )

    def _get(self, method: str, key: str, fields: Mapping[str, str]) -> Answer:
        found = self._objects.get(key)
        if found is None:
            return _error(404, "NoSuchKey")
        if fields.get("if-match", found.etag) != found.etag:
            return _error(412, "PreconditionFailed")
        start, end, status = 0, found.size, 200
        told = {
            "ETag": found.etag,
            "Last-Modified": _WRITTEN,
            "Accept-Ranges": "bytes",
            "Content-Type": "binary/octet-stream",
        }
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", fields.get("range", ""))
        if wanted:
            first, last = wanted.groups()
            start = int(first) if first else max(0, found.size - int(last))
            end = min(found.size, int(last) + 1) if first and last else found.size
            status = 206
            told["Content-Range"] = f"bytes {start}-{end - 1}/{found.size}"
        told["Content-Length"] = str(end - start)
        return Answer(status, told, [] if method == "HEAD" else found.cut(start, end))

    def _part(self, asked: Mapping[str, str], fields: Mapping[str, str], body: bytes) -> Answer:
        source = fields.get("x-amz-copy-source")
        if source is None:
            part = self._stored([body])
        else:
            old = self._objects[unquote(source).strip("/")]
            if fields.get("x-amz-copy-source-if-match", old.etag) != old.etag:
                return _error(412, "PreconditionFailed")
            first, last = fields["x-amz-copy-source-range"].removeprefix("bytes=").split("-")
            part = Stored(tuple(old.cut(int(first), int(last) + 1)), self._tag())
        self._uploads[asked["uploadId"]][int(asked["partNumber"])] = part
        if source is None:
            return Answer(fields={"ETag": part.etag})
        return _xml(f"<CopyPartResult><ETag>{part.etag}</ETag></CopyPartResult>")

    def _complete(self, key: str, upload: str, fields: Mapping[str, str], body: bytes) -> Answer:
        numbers = map(int, re.findall(rb"<PartNumber>(\d+)</PartNumber>", body))
        parts = [self._uploads[upload][number] for number in numbers]
        pieces = tuple(piece for part in parts for piece in part.pieces)
        answer = self._put(key, Stored(pieces, self._tag()), fields)
        if answer.status != 200:
            return answer
        del self._uploads[upload]
        return _xml(
            f"<CompleteMultipartUploadResult><ETag>{answer.fields['ETag']}</ETag>"
            "</CompleteMultipartUploadResult>"
        )

    def _put(self, key: str, new: Stored, fields: Mapping[str, str]) -> Answer:
        old = self._objects.get(key)
        if fields.get("if-none-match") == "*" and old is not None:
            return _error(412, "PreconditionFailed")
        if "if-match" in fields and (old is None or fields["if-match"] != old.etag):
            return _error(412, "PreconditionFailed")
        self._objects[key] = new
        return Answer(fields={"ETag": new.etag})

    def _stored(self, pieces: Iterable[bytes]) -> Stored:
        return Stored(tuple(map(memoryview, pieces)), self._tag())

    def _tag(self) -> str:
        return f'"{next(self._tags):032x}"'


def _xml(text: str) -> Answer:
    return Answer(
        fields={"Content-Type": "application/xml"}, body=[memoryview((_XML + text).encode())]
    )


def _error(status: int, code: str) -> Answer:
    answer = _xml(f"<Error><Code>{code}</Code><Message>{code}</Message></Error>")
    answer.status = status
    return answer
