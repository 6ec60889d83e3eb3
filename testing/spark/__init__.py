"""Sessions of Spark, a cluster of three JVMs, and parquet-java as the judge."""
