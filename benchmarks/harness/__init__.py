"""What suites share: tables to measure on, clocks, results, and the pages and pictures of them."""
