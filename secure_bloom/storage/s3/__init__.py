"""Objects of S3 as they are written: only new bytes travel, and no update of another is lost.

    old object   | kept bytes ........................ | old footer
    upload       | UploadPartCopy | ... | UploadPartCopy | UploadPart (filters, footer)
    conditions     If-Match of the old object, on every copy and on the completion

Importing this package loads boto3.  Objects are read through pyarrow (see ``objects``): a request
takes half of the time of a core there that it takes in boto3, and other stores take the same way.
"""

from secure_bloom.storage.s3.connection import connect, errors
from secure_bloom.storage.s3.replacement import S3Writer as Writer
from secure_bloom.storage.s3.replacement import conditions, remove

__all__ = ["Writer", "conditions", "connect", "errors", "remove"]
