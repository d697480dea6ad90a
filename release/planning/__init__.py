"""What a release would cost and how accurate it would be, before any table is read."""
