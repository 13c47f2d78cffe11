"""What a journal says about a run: checkpoints, visits, stories, comparison, replay."""
