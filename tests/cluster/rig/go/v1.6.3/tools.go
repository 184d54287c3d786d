//go:build tools

// Package testbed names what go.mod is for: Gateway API's conformance suite, and the echo server of its tests.
package testbed

import (
	_ "sigs.k8s.io/gateway-api/conformance"
	_ "sigs.k8s.io/gateway-api/conformance/echo-basic"
)
