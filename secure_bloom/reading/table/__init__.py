"""What files say of themselves: footers, columns, and folders; what they have in common."""
