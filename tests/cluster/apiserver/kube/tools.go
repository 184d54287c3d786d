//go:build tools

// Package testbed names what go.mod is for: the Kubernetes API server that the tests talk to.
package testbed

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
