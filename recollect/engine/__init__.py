"""Stream images through any method in bounded memory."""
