"""Operations that the leader proposes itself: timers, errands, node addresses. They have no route."""
