"""Change keys: rotate master keys, re-encrypt files, write files in clear.

    rekey_work        makes the work of a run from the caller's arguments
    file_work         what re-encryption and rotation have in common, as the check of new files
    bare_folder       the target of `decrypt` for a table: a folder without a log
    protection        the protection that a file has, and the one that it should have
    reencryption      new data keys: every module is decrypted and encrypted again
    rotation          new master keys: the data keys are wrapped again, pages are unchanged
    regions           the parts of a file in their order; `transfer` moves them
    new_footer        the footer with the new places and keys

No page is decoded or decompressed. The order of calls for one file::

    work = reencryption(policy, keys)  # or rotation(...), of `rekey_work`
    report = work.reencrypt("out/part-0.parquet", None)

``runs.loop`` does this for all files of a target.
"""
