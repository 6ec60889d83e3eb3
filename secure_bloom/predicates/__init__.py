"""What is asked: conditions as people and programs write them, and as columns understand them."""
