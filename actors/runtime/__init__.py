"""What every actor stands on: clocks, mailboxes, references, supervision."""
