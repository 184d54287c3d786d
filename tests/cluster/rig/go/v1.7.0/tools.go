//go:build tools

// Package testbed names what go.mod is for: Gateway API's conformance suite.
package testbed

import (
	_ "sigs.k8s.io/gateway-api/conformance"
)
