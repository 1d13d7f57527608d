"""The one exception for mistakes that a user can mend."""


class UserError(Exception):
    """One plain sentence: what is wrong, where, and what to do. The command line prints it and exits.

    `status` is the exit status: 1 the thing asked about is not there or failed, 2 wrong usage.
    """

    def __init__(self, message: str, *, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class QueryError(UserError):
    """SQL that the store refuses: the message is DuckDB's own."""
