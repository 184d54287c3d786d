"""The formats of conversations, each by itself: no module here knows another one (`contract`, `registry`)."""
