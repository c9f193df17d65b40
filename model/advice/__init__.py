"""The arithmetic behind advice and contributor insights: skew, distributions, heavy hitters."""
