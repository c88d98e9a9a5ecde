// Command smq-broker runs a broker: it takes messages in and serves them.
package main

import (
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/broker"
)

func main() { cli.Main("smq-broker", broker.New) }
