"""Files and folders: what one from a stranger may contain and ask for, locks, and names as text."""
