"""The exceptions of kvnode: every message says what is wrong, where, and what was expected."""


class KvnodeError(Exception):
    """Root of all exceptions that kvnode raises on purpose."""


class InputError(KvnodeError, ValueError):
    """Bad input from outside: a file, an argument, a trace line. The command line ends with status 2."""


class ParameterError(InputError):
    """A parameter that is unknown, out of range, or contradicts another."""
