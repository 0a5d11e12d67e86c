"""Training of the prior network on synthetic tables. Needs torch; not part of the package."""
