# `make demo` and `make test` need Python >= 3.11, make and Java 17+; the rest goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DOCS := .venv-docs
# Workers collect as they go: of how many tests a part has run nobody knows.
PARALLEL := --numprocesses auto --quiet --override-ini console_output_style=classic
# Tests start many processes: without bytecode each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
JAVA_HINT := Java 17 or later is needed by Spark: install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17), or set JAVA_HOME

# What a client of Spark Connect needs beyond .[dev].  Apart, because pyarrow loads pandas wherever it
# is installed, and every process would start half a second later.
CONNECT := pandas zstandard
# DuckDB's extensions for Delta and S3 come for fewer versions than DuckDB does.  Apart, beside the other one.
DUCKDB_EXTENDED := duckdb==1.5.5 duckdb-extension-delta==1.5.5 duckdb-extension-httpfs==1.5.5 \
	duckdb-extension-iceberg==1.5.5 duckdb-extension-avro==1.5.5
# Jars of Iceberg's Java library for Spark 3.5, from the index that has the rest.
PYPAIMON := pypaimon==2.1.0
PAIMON_JAVA := pypaimon==0.2.0
ICEBERG_JAVA := snowpark-connect-deps-iceberg==1.0.3
# What builds the site of the documentation: 15,000 files, which are unpacked beside the others.
SITE := mkdocs-material
# What is read by people: `make docs` checks its spelling, and so does a test.
SPELLED := README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs secure_bloom
# Azure's emulator, which runs on Node.  Without npm its tests are skipped.  Its package.json leaves out what
# it would load for telemetry and for a database behind it: seven of eight files.
AZURITE := tests/storage/azure/package.json

# Most of what is installed is never imported, so bytecode is made by the first import.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --no-warn-conflicts
# PySpark comes as sources, of which pip makes a wheel.  It is of jars, which are packed already: to pack
# them again would take half of the time.  The option is for packages that are named.
INSTALL_SPARK := $(INSTALL) --config-settings=--build-option=--compression=stored pyspark

# pip hides what a build that succeeds says.
SAY_WITHOUT_C := $(BIN)/python -c "from secure_bloom.kernels import extension as it; it.native or print('secure-bloom:', it.description)"

.DEFAULT_GOAL := help
.PHONY: help jar docs demo test pytest test-all test-spark check coverage mutants compatibility bench faults fuzz integrity judges no-false-negative histories format clean java \
  install-java install-dependencies install-dev install-connect install-duckdb install-site install-azurite install-spark install-iceberg-java install-pypaimon install-paimon-java native sanitize analyze

help:  ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: $(VENV)/.installed-spark install-java  ## The main job, end to end, on Spark (about a minute)
	@$(BIN)/secure-bloom demo

# mypy uses one core, and the first tests wait for a JVM: side by side.
test: $(VENV)/.installed-dev java  ## Style, types and tests (less than 10 minutes on 2 cores)
	@$(MAKE) --no-print-directory --jobs 2 check pytest

pytest: $(VENV)/.installed-dev java
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow"

test-all: $(VENV)/.installed-dev java check install-iceberg-java install-pypaimon install-paimon-java  ## The same with the slow cases
	$(BIN)/python -m pytest $(PARALLEL)

check: $(VENV)/.installed-dev  ## Style and types alone
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

coverage: $(VENV)/.installed-measure java  ## Which lines and branches the tests run (longer than make test)
	rm -f .coverage .coverage.*
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" --cov --cov-report=term:skip-covered

mutants: $(VENV)/.installed-measure  ## Which changes of the program the tests notice (about 20 minutes)
	$(BIN)/python -m mutmut run
	$(BIN)/python -m tests.mutants --show

docs: $(DOCS)/.installed  ## Check spelling and links, and build the site of the documentation into site/ (needs no Java)
	$(DOCS)/bin/codespell $(SPELLED)
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

compatibility: $(VENV)/.installed-dev java  ## Write docs/compatibility.md from what readers were seen to do
	$(BIN)/python -m pytest tests/interop/test_*.py tests/spark/test_types.py tests/spark/test_versions.py --compatibility docs/compatibility.md

# Apart, beside the environment: its PySpark stays as it is.
test-spark: $(VENV)/.installed-dev java  ## The tests of Spark on another version, with its row in docs/compatibility.md; VERSION=3.5
	@[ -n "$(VERSION)" ] || { echo "which version? make test-spark VERSION=3.5" >&2; exit 1; }
	@$(MAKE) --no-print-directory install-spark
	PYTHONPATH=$(CURDIR)/$(VENV)/spark-$(VERSION) $(BIN)/python -m pytest --quiet -m "not slow" tests/spark
	PYTHONPATH=$(CURDIR)/$(VENV)/spark-$(VERSION) $(BIN)/python -m pytest --quiet tests/spark/test_versions.py \
	  --compatibility docs/compatibility.md

bench: $(VENV)/.installed-bench java  ## Measure everything (about 40 minutes; needs gcc); SUITE=spark: one suite
	@command -v gcc >/dev/null || { echo "gcc is needed for the loops in C (Debian, Ubuntu: apt-get install gcc)" >&2; exit 1; }
	$(BIN)/python -m benchmarks $(addprefix --only ,$(SUITE))

faults: $(VENV)/.installed-dev  ## Failing calls, kills and power cuts against every writing verb; writes docs/reliability.md
	$(BIN)/python -m campaigns faults

fuzz: $(VENV)/.installed-dev  ## 11 million hostile inputs; writes docs/reliability.md
	$(BIN)/python -m campaigns fuzz

integrity: $(VENV)/.installed-dev  ## Every authenticated byte changed, for every reading verb; writes docs/reliability.md
	$(BIN)/python -m campaigns integrity

judges: $(VENV)/.installed-dev  ## Ten other readers and versions, each apart, answer the same before and after add; writes docs/compatibility.md (4 minutes)
	$(BIN)/python -m testing.judges
	$(BIN)/python -m pytest --quiet tests/interop/test_judges.py --compatibility docs/compatibility.md

no-false-negative: $(VENV)/.installed-dev java  ## 10 million present values against their filters, parquet-java beside ours; writes docs/reliability.md
	$(BIN)/python -m campaigns no_false_negative

histories: $(VENV)/.installed-dev java install-iceberg-java  ## Random histories of Iceberg tables with other writers; writes docs/reliability.md
	$(BIN)/python -m campaigns histories

jar: $(VENV)/.installed-dev java  ## Build the jar of the KMS classes anew, after a change of a Java source
	$(BIN)/python -m testing.spark.kms_jar

native: $(VENV)/.installed-dev  ## Build the C extension in place, with all warnings as errors (needs gcc or clang)
	$(BIN)/python hatch_build.py --strict

# The libraries come first in every process, and each object has memory of its own.  Python frees little at its end, so leaks are not looked for.
SANITIZED := PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 \
  LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)"

sanitize: $(VENV)/.installed-dev  ## The C extension under ASan and UBSan: its tests, then 10 million mutated calls (an hour)
	$(BIN)/python hatch_build.py --strict --sanitize
	{ $(SANITIZED) $(BIN)/python -m pytest -q -p no:cacheprovider tests/kernels && \
	  $(SANITIZED) $(BIN)/python -m campaigns mutation_fuzz --scenes kernels; }; \
	  code=$$?; $(BIN)/python hatch_build.py --strict; exit $$code

# GCC 12 takes the shift of a vector for one of a pointer's low bits.
analyze: $(VENV)/.installed-dev  ## The C extension through gcc -fanalyzer
	@for file in secure_bloom/kernels/native/*.c; do \
	  gcc -fanalyzer -Wno-analyzer-shift-count-overflow -std=c11 -O1 -Wall -Wextra -Wconversion -Werror \
	    -DPy_LIMITED_API=0x030B0000 -DSOURCES='""' -I"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])')" \
	    -c $$file -o /dev/null || exit 1; done; echo "no findings"

format: $(VENV)/.installed-dev  ## Put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove the virtual environments and all caches
	rm -rf $(VENV) $(DOCS) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* mutants

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; make PYTHON=python3.11 names another one" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "Python's venv module is needed (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	@# An old pip takes twice as long to find versions that go together; where there is no newer one, it does too.
	@$(INSTALL) --upgrade pip || true

$(VENV)/.installed-spark: $(VENV)/bin/python pyproject.toml
	@echo "installing into $(VENV) (PySpark is large: a minute or two)"
	@$(INSTALL_SPARK) --editable '.[spark]'
	@$(SAY_WITHOUT_C)
	@touch $@

# No core idles: pip uses one.
$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml $(AZURITE)
	@echo "installing into $(VENV) (PySpark is large: a minute or two)"
	@$(MAKE) --no-print-directory --jobs 3 install-dependencies install-azurite install-site
	@$(MAKE) --no-print-directory --jobs 2 install-dev install-duckdb install-connect
	@$(BIN)/python -m testing.spark.class_archive >/dev/null 2>&1 || echo "without an archive of its classes Spark starts slower"
	@$(SAY_WITHOUT_C)
	@touch $@ $(VENV)/.installed-spark

install-dependencies:
	@$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
	  > $(VENV)/dependencies.txt
	@$(INSTALL) --requirement $(VENV)/dependencies.txt

install-dev:
	@$(INSTALL_SPARK) --editable '.[dev]'

install-connect:
	@$(INSTALL) --no-deps --target $(VENV)/connect $(CONNECT) || \
	  echo "without $(CONNECT) the test of Spark Connect is skipped"

install-duckdb:
	@$(INSTALL) --no-deps --target $(VENV)/duckdb-delta $(DUCKDB_EXTENDED) || \
	  echo "without $(DUCKDB_EXTENDED) no test reads Delta or Iceberg tables by DuckDB"

# Iceberg's Java library has a runtime for Spark 3.5, not for the PySpark of the environment.
install-iceberg-java: $(VENV)/.installed-dev  ## What the tests of Iceberg's Java library need: it and PySpark 3.5, apart
	@{ $(MAKE) --no-print-directory install-spark VERSION=3.5 && { [ -d $(VENV)/iceberg-java ] || \
	  $(INSTALL) --no-deps --target $(VENV)/iceberg-java $(ICEBERG_JAVA); }; } || \
	  echo "without $(ICEBERG_JAVA) no test reads Iceberg tables by Iceberg's Java library"

# Paimon's Python library needs a pyarrow below 20.
install-pypaimon:  ## What the tests of Paimon's Python library need: it and its pyarrow, apart
	@[ -d $(VENV)/pypaimon ] || $(INSTALL) --target $(VENV)/pypaimon $(PYPAIMON) || \
	  echo "without $(PYPAIMON) no test reads Paimon tables by Paimon's Python library"

# Its source distribution has the jar, and needs no build of its own.
install-paimon-java:  ## What the tests of Paimon's writer in Java need: its classes, apart
	@[ -d $(VENV)/paimon-java ] || $(INSTALL) --no-deps --target $(VENV)/paimon-java $(PAIMON_JAVA) || \
	  echo "without $(PAIMON_JAVA) no test compacts Paimon tables"

install-spark:
	@[ -d $(VENV)/spark-$(VERSION)/pyspark ] || { echo "installing into $(VENV)/spark-$(VERSION)"; \
	  $(INSTALL_SPARK) --target $(VENV)/spark-$(VERSION) 'pyspark==$(VERSION).*'; }

install-site:
	@$(INSTALL) --target $(VENV)/site $(SITE) || echo "without $(SITE) the site's tests are skipped"

# A registry that does not answer is given up soon.
install-azurite:
	@mkdir -p $(VENV)/azurite && cp $(AZURITE) $(VENV)/azurite/
	@{ command -v npm && npm install --ignore-scripts --no-audit --no-fund --fetch-timeout 20000 --fetch-retries 1 \
	    --prefix $(VENV)/azurite; } >/dev/null 2>&1 || \
	  echo "without npm and the packages of $(AZURITE) no test writes to Azure's emulator"

# An environment of its own: the one for work stays as it is.
$(DOCS)/.installed: pyproject.toml
	@$(MAKE) --no-print-directory VENV=$(DOCS) $(DOCS)/bin/python
	@echo "installing into $(DOCS)"
	@$(DOCS)/bin/python -m pip install --quiet --no-compile --no-warn-conflicts --editable '.[docs]'
	@touch $@

$(VENV)/.installed-measure: $(VENV)/.installed-dev
	@$(INSTALL) --editable '.[dev,measure]'
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	@$(INSTALL) --editable '.[dev,bench]'
	@touch $@

# The version of the Java that Spark would start, as a number.
JAVA_VERSION = $$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1)

# What is missing is said, never installed.
java:
	@[ "$(JAVA_VERSION)" -ge 17 ] 2>/dev/null || { echo "$(JAVA_HINT)" >&2; exit 1; }

# The demo and CI help themselves, as root on Debian; the tests only say what is missing.
install-java:
	@if [ "$(JAVA_VERSION)" -ge 17 ] 2>/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && [ -z "$$JAVA_HOME" ] && command -v apt-get >/dev/null; then \
	  echo "Java 17 or later is missing: installing openjdk-17-jre-headless"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless \
	    || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq default-jre-headless; } >/dev/null; \
	fi; \
	$(MAKE) --no-print-directory java
