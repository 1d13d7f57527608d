"""Real trainers, faults to put into them, and small recorded runs."""
