"""``python -m secure_bloom``."""

from secure_bloom.cli import main

main()
