package admin

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smq"
)

// damageVerdict is what a listing ends with of which some things could not be
// read, each for its own reason: a line for each, and exit code 1. The others
// have been listed by then.
func damageVerdict(e *cli.Env, thing string, errs []error) error {
	const advice = "restore the file, for instance from a backup"
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return cli.Exit(cli.ExitFailed, fmt.Errorf("%w; %s", errs[0], advice))
	}
	for _, err := range errs {
		e.Warnf("%v", err)
	}
	return cli.Exit(cli.ExitFailed, fmt.Errorf("%s cannot be read; %s", smq.Count(len(errs), thing), advice))
}

// forPrograms reports whether the output is a document, which tells of damaged
// things too.
func forPrograms(e *cli.Env) bool {
	return e.Flags.Output == cli.FormatJSON || e.Flags.Output == cli.FormatYAML
}
