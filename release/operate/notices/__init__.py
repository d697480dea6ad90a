"""Telling people how scheduled releases end, each end once and with what to do next."""
