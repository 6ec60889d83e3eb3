"""Write blobs of Azure: only new bytes are sent, and another program's update is never lost.

    old blob     | kept bytes ................................ | old footer
    new blob     | Put Block From URL | ... | Put Block From URL | Put Block (filters, footer)
    conditions     If-Match of the old blob, on every copy and on Put Block List

Importing this package loads azure-storage-blob.
"""

from secure_bloom.storage.azure.account_client import connect
from secure_bloom.storage.azure.block_blob import BlobWriter as Writer
from secure_bloom.storage.azure.block_blob import conditions, errors, remove

__all__ = ["Writer", "conditions", "connect", "errors", "remove"]
