"""How noise laws are made: one file a method, all behind :func:`release.ladder.design`."""
