"""AWS STS: temporary credentials for users and roles, whose tokens need no storage."""
