"""Operations on jobs, one file for each."""
