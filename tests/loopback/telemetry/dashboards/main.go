// Reads dashboards as strictly as Grafana's published types can: `dashboards FILE...`. What is wrong is on standard error, and
// the exit code is 1.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func read(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var found dashboard.Dashboard
	if err := found.UnmarshalJSONStrict(text); isOne(err) {
		return err
	}
	if err := found.Validate(); isOne(err) {
		return err
	}
	return nil
}

// The types answer with an empty list where nothing is wrong, which is not nil.
func isOne(err error) bool {
	var all cog.BuildErrors
	return err != nil && !(errors.As(err, &all) && len(all) == 0)
}

func main() {
	plugins.RegisterDefaultPlugins() // the types of panels and of their queries
	status := 0
	for _, name := range os.Args[1:] {
		if err := read(name); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			status = 1
		}
	}
	os.Exit(status)
}
