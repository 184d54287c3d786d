"""What stands between an exchange and its upstream carrier, so that neither notices. `registry` has the rows."""
