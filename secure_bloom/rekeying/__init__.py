"""Change keys: rotate master keys, re-encrypt files, write files in clear.

No page is decoded or decompressed.
"""
