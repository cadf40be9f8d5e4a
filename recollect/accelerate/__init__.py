"""The same numbers, faster: optional, and deletable as a folder."""
