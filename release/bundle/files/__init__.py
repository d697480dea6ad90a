"""What stands in the files of a release: the question, the keys, the laws."""
