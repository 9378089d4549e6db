"""Why a replica ends by itself, beside a failed disk (`storage.DiskFailed`) and damaged data (`Corrupt`)."""


class Replaced(Exception):
    """A state from the leader has taken the place of this replica's: it begins again from there."""


class Distrusted(Exception):
    """This replica's state or memory cannot be right. It must not serve again before an operator has checked it."""
