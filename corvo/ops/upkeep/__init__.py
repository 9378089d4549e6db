"""Operations that the leader asks of itself when time has passed. They have no route."""
