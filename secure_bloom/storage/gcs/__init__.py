"""Write objects of Google Cloud Storage: another program's update is never lost.

The store cannot copy ranges, so the whole object is uploaded, with the old object's generation as a
condition.  Importing this package loads google-cloud-storage.
"""

from secure_bloom.storage.gcs.whole_upload import GoogleWriter as Writer
from secure_bloom.storage.gcs.whole_upload import conditions, connect, errors, remove

__all__ = ["Writer", "conditions", "connect", "errors", "remove"]
