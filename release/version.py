"""The version of this distribution; it stands in every release it writes."""

VERSION = "0.1.0"
