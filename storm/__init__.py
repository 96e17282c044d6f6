"""Many clients of both eras on several workers that are killed again and again: `python -m storm`."""
