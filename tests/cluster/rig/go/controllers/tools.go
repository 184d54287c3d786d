//go:build tools

// Package testbed names what go.mod is for: the controllers of Kubernetes that make Pods of Deployments.
package testbed

import _ "k8s.io/kubernetes/cmd/kube-controller-manager"
