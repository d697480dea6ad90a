"""What tabulations would cost and how accurate they would be, before any table is read."""
