"""Operations on cron schedules: what people ask of them, and the firing that the leader asks of itself."""
