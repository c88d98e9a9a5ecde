// Command smq-sub subscribes to messages, the other end of a pipeline.
package main

import (
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/sub"
)

func main() { cli.Main("smq-sub", sub.New) }
