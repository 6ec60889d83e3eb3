"""The S3 server of the tests."""

from testing.storage import port, s3_rights

__all__ = ["port", "s3_rights"]
