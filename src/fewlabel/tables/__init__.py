"""Tables of users: reading, columns to features, writing, model files."""
