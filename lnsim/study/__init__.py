"""What is compared with what: studies, their models and the known relations between them."""
