module gatewright.dev/tests/goparse

go 1.21
