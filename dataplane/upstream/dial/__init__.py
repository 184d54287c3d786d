"""How a connection to an endpoint comes about: steps, each over what the ones below it have opened."""
