"""Queues: messages for people and programs, kept in the store; brokers are ways out and in."""
