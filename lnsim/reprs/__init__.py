"""What a notebook shows of the values that lnsim gives out: small tables that need no style sheet around them."""
