"""What the bus tracker is made of. Imported by nothing: ../tracker.py asks for what it needs."""
