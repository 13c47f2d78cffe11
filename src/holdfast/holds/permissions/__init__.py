"""Who a hold is assigned to, and who may do what to it."""
