"""Operations of bulk actions."""
