"""The account of people: what runs enter there, and what it makes them refuse, repair or let go."""
