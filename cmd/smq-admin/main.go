// Command smq-admin administers a cluster.
package main

import (
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/admin"
)

func main() { cli.Main("smq-admin", admin.New) }
