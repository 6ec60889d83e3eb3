"""Objects of Google Cloud Storage as they are written: no update of another is lost.

The store has no copies of ranges, so the whole object is uploaded; with the generation of the old
one as a condition.  Importing this package loads google-cloud-storage.
"""

from secure_bloom.storage.gcs.whole_upload import GoogleWriter as Writer
from secure_bloom.storage.gcs.whole_upload import conditions, connect, errors, remove

__all__ = ["Writer", "conditions", "connect", "errors", "remove"]
