"""Operations on cron schedules: requests of users, and the firing that the leader proposes."""
