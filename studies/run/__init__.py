"""What run_all.py does with studies: plans, executed notebooks, their record, and the pages over all of them."""
