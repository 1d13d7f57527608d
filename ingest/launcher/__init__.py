"""`rankscope run`: start a command so that all its ranks record themselves, and record how they end.

torchrun runs inside this process, where its agent can be watched from close by; all else runs as a child.
"""
