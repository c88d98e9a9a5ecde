package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/admin"
	"github.com/seaweedmq/smq/lib/command/broker"
	"github.com/seaweedmq/smq/lib/command/master"
	"github.com/seaweedmq/smq/lib/command/pub"
	"github.com/seaweedmq/smq/lib/command/sub"
)

// trees are the command trees of all binaries, by name.
func trees() map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	for name, build := range map[string]func(*cli.Env) *cobra.Command{
		"smq-master": master.New, "smq-broker": broker.New, "smq-pub": pub.New, "smq-sub": sub.New, "smq-admin": admin.New,
	} {
		all[name] = build(&cli.Env{Name: name, Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Getenv: func(string) string { return "" }})
	}
	return all
}

// each visits the commands that people see.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	visit(cmd)
	for _, c := range cmd.Commands() {
		each(c, visit)
	}
}

// typeNames are how flags without a name for their value show it.
var typeNames = []string{"string", "strings", "stringArray", "int", "int32", "int64", "uint", "uint64", "float", "float64", "duration"}

// Every command says in a line what it does, shows how it is called, and names
// the values of its flags.
func TestHelpTexts(t *testing.T) {
	for _, root := range trees() {
		each(root, func(cmd *cobra.Command) {
			if cmd.Short == "" || strings.ContainsAny(cmd.Short, "\n.") || len(cmd.Short) > 90 {
				t.Errorf("%s: it is in short %q", cmd.CommandPath(), cmd.Short)
			}
			if !strings.Contains(cmd.Example, cmd.CommandPath()) {
				t.Errorf("%s: no example shows it: %q", cmd.CommandPath(), cmd.Example)
			}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				name, usage := pflag.UnquoteUsage(f)
				for _, bad := range typeNames {
					if name == bad {
						t.Errorf("%s --%s: its value is called %s", cmd.CommandPath(), f.Name, name)
					}
				}
				if usage == "" || strings.HasSuffix(usage, ".") {
					t.Errorf("%s --%s: %q", cmd.CommandPath(), f.Name, usage)
				}
			})
		})
	}
}

// calls are command lines in a text, each from the name of a binary to the end of the
// line, of the command or of the code.
var calls = regexp.MustCompile("smq-(?:admin|pub|sub|broker|master)(?: [^`|;&#\n]*)?")

// flagWords are flags on a command line.
var flagWords = regexp.MustCompile(`(?:^|\s)(--?[a-z][a-z-]*)`)

// No example, no help text and no document names a flag that there is not.
func TestExamplesNameFlagsThatThereAre(t *testing.T) {
	all := trees()
	texts := map[string]string{}
	for _, root := range all {
		each(root, func(cmd *cobra.Command) { texts[cmd.CommandPath()+" --help"] = cmd.Example + "\n" + cmd.Long })
	}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range files {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(content)
		}
	}
	checked := 0
	for where, text := range texts {
		for _, line := range calls.FindAllString(text, -1) {
			line, _, _ = strings.Cut(line, ". ") // in a sentence
			words := strings.Fields(line)
			cmd, _, err := all[words[0]].Find(words[1:])
			if err != nil {
				t.Errorf("%s: %s: %v", where, line, err)
				continue
			}
			for _, flag := range flagWords.FindAllStringSubmatch(line, -1) {
				checked++
				if !hasFlag(cmd, flag[1]) {
					t.Errorf("%s: %s: %s has no %s", where, line, cmd.CommandPath(), flag[1])
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d flags were found", checked)
	}
}

func hasFlag(cmd *cobra.Command, word string) bool {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if name, long := strings.CutPrefix(word, "--"); long {
		return cmd.Flag(name) != nil || name == "version"
	}
	name := word[1:2]
	return cmd.Flags().ShorthandLookup(name) != nil || cmd.InheritedFlags().ShorthandLookup(name) != nil
}
