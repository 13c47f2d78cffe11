"""Who a hold is for, and who may do what to it."""
