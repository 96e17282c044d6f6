"""Speed, beside the official SDK, as ratios of one run."""
