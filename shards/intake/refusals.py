"""What callers are told when this replica cannot serve them."""

from corvo.model.errors import Refused

NO_LEADER = Refused("NOT_LEADER", "this shard has no leader at the moment; send the request again", 50)
LOST = Refused(
    "OUTCOME_UNKNOWN", "the shard lost its leader while the request was in flight; check before you repeat it", 1_000
)
FULL = Refused("OVERLOADED", "too many requests wait for the shard's leader; send the request again", 250)
BEHIND = Refused("OVERLOADED", "the other replicas are behind; send the request again", 250)
