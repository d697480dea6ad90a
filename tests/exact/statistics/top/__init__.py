"""The k commonest categories, mechanism by mechanism."""
