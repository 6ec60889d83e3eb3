"""What all reports of verbs have in common, and texts for people.

    base   Report: to_dict, to_json, to_arrow, to_pandas, and its table in a notebook
    text   counts, sizes, names of columns; how text from a file is made safe to show

A report is a frozen dataclass. All forms of output are made from its one document:

    class AddReport(WritingReport[FileAddReport]): ...

    report.to_dict()["files"][0]["path"]
"""
