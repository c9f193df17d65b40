"""What every actor stands on: clocks, mailboxes, supervision."""
