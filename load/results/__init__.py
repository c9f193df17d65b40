"""The results of runs: saved, compared, drawn and printed."""
