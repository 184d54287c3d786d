"""What looking for a regular expression may cost: RE2 takes linear time, but cannot be stopped."""
