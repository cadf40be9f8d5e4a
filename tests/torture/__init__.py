"""Torture: kill, fuzz, edit and starve recollect at random for a stated time (`make torture`)."""
