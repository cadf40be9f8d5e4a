"""The paper's figures and tables, one file each: what is computed, what the paper found, how it is drawn."""
