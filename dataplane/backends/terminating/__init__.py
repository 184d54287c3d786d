"""What a kind of backends that ends requests itself stands on (`contract` has the laws)."""
