"""Base items: wireless tasks with their answers, before anything is done to their evidence."""
