"""Add filters to files: plan them in memory, then write. This is the main job of the package."""
