"""The core of a slice under proof: stand-ins for its parts, its surroundings, and stories of what can happen."""
