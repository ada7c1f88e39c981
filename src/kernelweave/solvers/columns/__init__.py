"""Linear and quadratic problems with more columns than are ever formed, by column generation."""
