// Command strategic_merge answers what Kubernetes makes of an object and a strategic merge patch: the oracle of our own
// merge. It reads a list of {kind, original, patch} from standard input and writes a list of {merged} or {error}.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

var kinds = map[string]any{
	"Deployment":              appsv1.Deployment{},
	"Service":                 corev1.Service{},
	"ServiceAccount":          corev1.ServiceAccount{},
	"PodDisruptionBudget":     policyv1.PodDisruptionBudget{},
	"HorizontalPodAutoscaler": autoscalingv2.HorizontalPodAutoscaler{},
}

type question struct {
	Kind            string
	Original, Patch json.RawMessage
}

type answer struct {
	Merged json.RawMessage `json:"merged,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := make([]answer, len(questions))
	for i, asked := range questions {
		merged, err := strategicpatch.StrategicMergePatch(asked.Original, asked.Patch, kinds[asked.Kind])
		if err != nil {
			answers[i].Error = err.Error()
			continue
		}
		answers[i].Merged = merged
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
