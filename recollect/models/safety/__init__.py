"""Read other people's files before torch does: what is not on a closed list is refused."""
