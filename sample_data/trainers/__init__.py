"""Small trainers that learn for real, so that what is shown of them really happened."""
