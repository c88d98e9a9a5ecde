package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// maxTypos is how many letters a word may differ from the one that was meant.
const maxTypos = 2

// DidYouMean is ", did you mean X?" for the name nearest to what was typed, and
// empty when none is near.
func DidYouMean(typed string, names []string) string { return didYouMean(typed, names, "") }

// didYouMean is ", did you mean X?" for the name nearest to what was typed,
// and empty when none is near.
func didYouMean(typed string, names []string, prefix string) string {
	best, distance := "", maxTypos+1
	for _, name := range names {
		d := editDistance(typed, name)
		if len(typed) > 2 && strings.HasPrefix(name, typed) {
			d = min(d, 1)
		}
		if d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s%s?", prefix, best)
}

// editDistance counts the letters to insert, delete or replace, or neighbours
// to swap, that turn a into b.
func editDistance(a, b string) int {
	row := func(first int) []int { r := make([]int, len(b)+1); r[0] = first; return r }
	before, last := row(0), row(0)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := row(i)
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			next[j] = min(replace, last[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last = last, next
	}
	return last[len(b)]
}

// elsewhere are flags of other tools, and the flag that does the same here.
var elsewhere = map[string]struct{ flag, usage string }{
	"no-headers":       {"output", "-o plain"},
	"format":           {"output", "--output"},
	"bootstrap-server": {"master", "--master"},
	"brokers":          {"master", "--master"},
	"server":           {"master", "--master"},
}

// flagError makes what is wrong with the flags a usage error, with the name
// that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		hint = didYouMean(name, names, "--")
		if f := elsewhere[name]; hint == "" && cmd.Flags().Lookup(f.flag) != nil {
			hint = ", did you mean " + f.usage + "?"
		}
	}
	if value := new(pflag.InvalidValueError); errors.As(err, &value) {
		err = badValue(value)
	}
	return Exit(ExitUsage, fmt.Errorf("%w%s; see %s --help", err, hint, cmd.CommandPath()))
}

// badValue says what is wrong with a flag's value.
func badValue(err *pflag.InvalidValueError) error {
	name := "--" + err.GetFlag().Name
	if number := new(strconv.NumError); errors.As(err, &number) {
		switch {
		case errors.Is(number.Err, strconv.ErrRange):
			return fmt.Errorf("%s %q is out of range", name, err.GetValue())
		case number.Func == "ParseBool":
			return fmt.Errorf("%s %q is neither true nor false", name, err.GetValue())
		}
		return fmt.Errorf("%s %q is not a whole number", name, err.GetValue())
	}
	return fmt.Errorf("%s: %w", name, err.Unwrap())
}

// OneOf checks a value that has a fixed set of names.
func OneOf(what, value string, names ...string) error {
	if slices.Contains(names, value) {
		return nil
	}
	return Usagef("%s %q is not one of %s%s", what, value, strings.Join(names, ", "), didYouMean(value, names, ""))
}
