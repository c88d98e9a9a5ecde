// Command smq-pub publishes messages, one end of a pipeline.
package main

import (
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/pub"
)

func main() { cli.Main("smq-pub", pub.New) }
