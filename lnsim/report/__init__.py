"""What people look at: figures, notebooks, reports."""
