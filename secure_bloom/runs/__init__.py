"""One run of any verb that writes files: work x target x runner, and the loop over them.

    work      what is done to one file: ``Rewriter`` (filters), ``Reencryption``, ``Rotation``
    target    where the new content goes: files in place or below a folder, a commit of a table
    runner    who does it: threads and processes of this machine
    loop      list, check, process, publish, report
    progress  counts the steps of all files

The order of calls::

    target = FilesTarget(paths="new/")
    done = run(open_work, target, LocalRunner(jobs=2), progress)
    done.reports, done.commits

A work knows no table and no other files, a target knows neither filters nor keys, and a runner
knows neither of them.  ``open_work`` can be pickled, because each process opens its own keys.
"""
