"""The same workloads on other runtimes, each in an environment of its own, beside ours in one run."""
