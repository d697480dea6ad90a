"""Open questions, each as a program that can be run again (docs/design/open-questions.md)."""
