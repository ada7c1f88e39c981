"""What a fitted model can tell."""
