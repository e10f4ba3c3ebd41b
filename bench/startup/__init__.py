"""What happens before the first command or call: checks and preparations of the process."""
