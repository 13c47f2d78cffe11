"""Who answers the prompts of codergen stages."""
