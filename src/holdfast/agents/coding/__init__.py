"""The tools of a coding agent: files of a project folder, search, commands."""
