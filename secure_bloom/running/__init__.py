"""How the work of one run goes on: in threads, in other processes, in order, within a time.

    ordered_pool       threads; results in the order of the items, memory bounded
    worker_processes   other processes, which get their work over a socket
    parallelism        which of both for the files of a run, and the loop over the files
    time_limit         how long a verb may take
    process_start      settings of a process that runs this program alone

A verb asks ``chosen_parallelism`` once, then takes reports from ``each_file`` as files are done:

    parallelism = chosen_parallelism(len(paths), jobs, mean_size=size, at_once=1)
    for index, report in each_file(work, open_work, paths, parallelism, lost=failed):
        reports[index] = report
"""
