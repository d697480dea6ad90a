"""What charges amount to together: exact composition by privacy-loss distributions."""
