"""Write objects of S3: only new bytes are sent, and another program's update is never lost.

    old object   | kept bytes ........................ | old footer
    upload       | UploadPartCopy | ... | UploadPartCopy | UploadPart (filters, footer)
    conditions     If-Match of the old object, on every copy and on the completion

Importing this package loads boto3.  Objects are read through pyarrow (see ``objects``): it needs
half of the CPU time of boto3 for a request, and reads other stores in the same way.
"""

from secure_bloom.storage.s3.connection import connect, errors
from secure_bloom.storage.s3.replacement import S3Writer as Writer
from secure_bloom.storage.s3.replacement import conditions, remove

__all__ = ["Writer", "conditions", "connect", "errors", "remove"]
