"""Live studies: ask for a pair, show it, report its reward when it comes; all in a durable log."""
