"""What came of a run: kept, compared, drawn and printed."""
