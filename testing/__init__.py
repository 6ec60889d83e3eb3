"""What tests, benchmarks and campaigns share: files, servers, sessions, and a look inside of files.

==========================  ======================================================================
``project``                 folders of the project, and files that a clone may lack
``tables``                  Parquet files in every footer mode, with the keys of their columns
``columns, typed_files``    a file for each type and encoding
``delta_logs, ...tables``   logs and tables of Delta and Iceberg; ``hudi_files``: base files of Hudi
``surgery, live_footer``    what a file holds; footers changed and written again
``storage, s3_server``      folders, buckets on a server of S3; ``store_proxy`` counts and fails
                            requests, ``memory_store`` is a bucket without a server
``openbao, *_kms``          a KMS that runs, and those that count or refuse
``http_servers, slow_*``    servers that answer what a test asks for
``spark``                   sessions, a cluster, parquet-java as the judge
``interleaving``            runs at the same time, one step at a time
``command_line``            the command in a process that is started already
==========================  ======================================================================

    from testing.tables import KEYRING, Mode, customers, write

    path = write(folder / "x.parquet", customers(100), Mode.ENCRYPTED)
    secure_bloom.add_bloom_filters(path, columns=["email"], keys=KEYRING)

``tests``, ``benchmarks`` and ``campaigns`` import from here and never from each other; what one
folder of tests alone needs stays there.  Nothing here is in the wheel.
"""
