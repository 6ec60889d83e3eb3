"""Change keys: rotate master keys, re-encrypt files, write files in clear.

    rekey_work        makes the work of a run, as the caller asked
    file_work         what all of these works have in common
    bare_folder       the target of `decrypt` for a table: a folder without a log
    protection        what a file's protection is, and what it should be
    reencryption      new data keys: every module is decrypted and encrypted again
    rotation          new master keys: the data keys are wrapped again, no page is touched
    regions           the parts of a file in their order; `transfer` moves them
    new_footer        the footer with the new places and keys
    written_check     the new file is opened before it takes the old one's place

No page is decoded or decompressed.  The order of calls for one file::

    work = reencryption(policy, keys)  # or rotation(...), of `rekey_work`
    report = work.reencrypt("out/part-0.parquet", None)

``runs.loop`` does this for all files of a target.
"""
