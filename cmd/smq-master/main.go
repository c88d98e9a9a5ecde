// Command smq-master runs a master: it registers brokers and names the one that leads.
package main

import (
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/master"
)

func main() { cli.Main("smq-master", master.New) }
