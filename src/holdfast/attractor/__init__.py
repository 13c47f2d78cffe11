"""Attractor pipelines, run: handlers, backends, interviewers, the run directory."""
