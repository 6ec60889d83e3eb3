#!/bin/sh
# The Python of Spark's workers: that of the tests, without the archives that Spark puts on its path.
# No bytecode is kept of an archive: each worker would compile PySpark again, for half a second.
# The daemon that forks the workers imports for all of them.
[ "$2" != pyspark.daemon ] || set -- "${0%/*}/python_daemon.py" "$@"
PYTHONPATH=$TESTS_PYTHONPATH exec "$TESTS_PYTHON" "$@"
