"""Tables in a bucket of an S3 server, as the tests of storage have it."""

from testing.storage import bucket, port, s3_rights

__all__ = ["bucket", "port", "s3_rights"]
