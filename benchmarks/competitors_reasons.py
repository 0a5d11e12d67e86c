REASONS: dict[tuple[str, str], str] = {}
