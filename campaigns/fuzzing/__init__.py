"""Inputs that nobody wrote: what is mutated, how, and what is done with each input."""
