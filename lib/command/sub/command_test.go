package sub

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/cli"
)

func TestFlagMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"":                   "TOPIC is missing",
		"t .x":               `invalid topic name: ".x" begins with a dot`,
		"t --from nowhere":   `--from "nowhere" is not one of earliest, latest`,
		"t --until tomorrow": `--until "tomorrow" is not one of end`,
		"t -p x":             `-p "x" is not a list of partitions`,
		"t -f jason":         `format "jason" is not one of value, raw, length, json, did you mean json?`,
		"t -f %q":            `template "%q"`,
		"t -n 0":             "-n 0: the least is 1",
		"t -f json -d x":     "-d goes with -f value only",
		`t -d \q`:            `unknown escape \q`,
		"t -g workers":       "unknown shorthand flag: 'g'",
	} {
		var out, errOut bytes.Buffer
		e := &cli.Env{Name: "smq-sub", Stdout: &out, Stderr: &errOut, Getenv: func(string) string { return "" }}
		code := e.Run(t.Context(), New, strings.Fields(args))
		if code != cli.ExitUsage || !strings.Contains(errOut.String(), want) || out.Len() > 0 || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, stdout %q\ngot  %swant %s", args, code, out.String(), errOut.String(), want)
		}
	}
}
