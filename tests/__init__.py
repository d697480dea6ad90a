"""The tests of dp-release."""
