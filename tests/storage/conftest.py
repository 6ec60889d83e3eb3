"""The fixtures of writing: a folder, a small disk, a bucket of an S3 server."""

from testing.storage import bucket, data_file, port, run, s3_rights, small_disk, staging

__all__ = ["bucket", "data_file", "port", "run", "s3_rights", "small_disk", "staging"]
