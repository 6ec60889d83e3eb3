"""What every report of a verb can do, and words for people.

    base   Report: to_dict, to_json, to_arrow, to_pandas, and its table in a notebook
    text   counts, sizes, names of columns; text from a file as it may be shown

A report is a frozen dataclass; all forms of output come from its one document:

    class AddReport(WritingReport[FileAddReport]): ...

    report.to_dict()["files"][0]["path"]
"""
