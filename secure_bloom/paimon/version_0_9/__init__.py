"""Which files Paimon 0.9 reads by their indexes, rightly or not: the rules ``paimon-0.9``."""
