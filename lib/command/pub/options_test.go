package pub

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/cli"
)

func TestRate(t *testing.T) {
	for text, want := range map[string]string{"1000/s": "1000 10 false", "10MB/s": "1e+07 100000 true", "0.5/s": "0.5 1 false", "2KiB/s": "2048 20 true", "100msg/s": "100 1 false"} {
		p, err := parseRate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := fmt.Sprint(float64(p.limiter.Limit()), " ", p.limiter.Burst(), " ", p.bytes); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"0", "100", "2KiB", "-1/s", "fast", "/s", "1/h"} {
		if _, err := parseRate(text); cli.ExitCode(err, nil) != cli.ExitUsage {
			t.Errorf("%s: %v, want a usage error", text, err)
		}
	}
}

func TestFlagMistakes(t *testing.T) {
	folder := t.TempDir()
	file := folder + "/in"
	if err := os.WriteFile(file, []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args string
		code int
		want string
	}{
		{"", 2, "TOPIC is missing"},
		{"a/b/c", 2, `topic "a/b/c": invalid topic name: '/' is not allowed`},
		{"t -f jsn", 2, `format "jsn" is not one of lines, json, raw, length, did you mean json?`},
		{"t -f %q", 2, `template "%q": `},
		{"t -f raw -d x", 2, "-d and -K need lines"},
		{"t --each", 2, "--each needs a FILE"},
		{"t --each -f json " + file, 2, "--each takes files as they are"},
		{"t -f json --null", 2, "--null does not go with -f json"},
		{"t -p -2", 2, "partition -2"},
		{"t -p 1 --repartition", 2, "exclude each other"},
		{"t --tee --report", 2, "use one"},
		{"t --partitions 3", 2, "--partitions needs --create"},
		{"t --create --partitions 0", 2, "a topic has 1 to 1000000"},
		{"t --batch 1GB", 2, "--batch 1GB: use 1B to 16.1MiB"},
		{"t -H x", 2, `header "x" is not NAME=VALUE`},
		{"t -d \\q", 2, `unknown escape \q`},
		{"t --delimiter=", 2, "-d is empty"},
		{"t --acks stord", 2, `ack level "stord" is not one of stored, replicated, default, did you mean stored?`},
		{"t --compress lz5", 2, "did you mean lz4?"},
		{"t --rate x", 2, `--rate "x" is not a rate; write for instance 50000msg/s or 20MB/s`},
		{"t " + file + ".none", 4, "cannot read " + file + ".none: no such file or directory"},
		{"t --key-delimiter=", 2, "-K is empty"},
		{"t -p 1 --spread", 2, "-p and --spread exclude each other"},
		{"t --repartition", 2, "--repartition needs -f json or a template"},
		{"t " + folder, 2, "it is a folder"},
	}
	for _, test := range tests {
		var out, errOut bytes.Buffer
		e := &cli.Env{Name: "smq-pub", Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut, Getenv: func(string) string { return "" }}
		code := e.Run(t.Context(), New, strings.Fields(test.args))
		if code != test.code || !strings.Contains(errOut.String(), test.want) || out.Len() > 0 || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d, stdout %q\ngot  %swant %s", test.args, code, test.code, out.String(), errOut.String(), test.want)
		}
	}
}

func TestFailedToMustNotBeTheInput(t *testing.T) {
	path := t.TempDir() + "/in"
	if err := os.WriteFile(path, []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	inputs, err := findInputs(&cli.Env{}, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&options{failedTo: path}).checkFailures(inputs); cli.ExitCode(err, nil) != cli.ExitUsage {
		t.Errorf("got %v", err)
	}
	if err := (&options{failedTo: path}).checkFailures(nil); cli.ExitCode(err, nil) != cli.ExitRefused {
		t.Errorf("no input, but not empty: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "x\n" {
		t.Errorf("the input was touched: %q, %v", b, err)
	}
}
