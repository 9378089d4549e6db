"""Operations on jobs, one idea a file."""
