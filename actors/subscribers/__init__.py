"""Those who follow the change feeds: each with a durable checkpoint in every log it reads."""
