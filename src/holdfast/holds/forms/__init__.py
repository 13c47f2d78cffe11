"""Answers to forms: read field by field, or refused with every problem."""
