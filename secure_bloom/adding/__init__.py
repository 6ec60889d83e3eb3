"""Plan filters in memory and write them into files: the main job."""
