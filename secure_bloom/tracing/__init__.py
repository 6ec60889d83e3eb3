"""Leak search: where values of columns occur in files of any kind.

    subjects    the columns that are looked for: their values, folded, in a filter and as hashes
    forms       the texts in which a typed value may be written, and its digests
    index       one index of the words of all subjects
    encodings   texts inside a text: Base64, escapes, UTF-16
    sources     the texts of a file: containers and formats are opened, everything is read raw too
    content     what a file contains, and the first bytes by which formats are recognized
    containers  zip, tar, 7z and PDF
    inner_files  files that begin inside another file
    apart       files that are decoded in a process of limited memory
    packed      streams that are decompressed within a budget
    tabular     the columns of Parquet, Arrow, ORC, Avro and SQLite files
    search      asks all words of a file, and confirms those that pass
    written     words as they are written, for the filters of a table to be asked
    verdicts    how many words of a column in a file are a finding
    report      what was found, in counts: no report holds a word

The order of calls::

    index = WordIndex.build([SearchedColumn(name="email", values=values)], memory=1 << 30)
    traces = [trace_file(path, index) for path in paths]
    report = TraceReport(files=confirmed(traces, index), columns=index.columns())
"""
