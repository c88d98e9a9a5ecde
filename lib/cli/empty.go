package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mayBeEmpty is the annotation of flags for which an empty text is a value.
const mayBeEmpty = "smq_may_be_empty"

// MayBeEmpty says that empty texts are values of these flags, or that their
// command says itself what is wrong with them.
func MayBeEmpty(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		must(f.SetAnnotation(name, mayBeEmpty, []string{"true"}))
	}
}

// refuseEmpty refuses flags that are given and empty. Most likely a script's
// variable is not set: what the flag is there for would silently not be done.
func refuseEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err != nil || f.Annotations[mayBeEmpty] != nil {
			return
		}
		list, isList := f.Value.(pflag.SliceValue)
		switch {
		case isList && len(list.GetSlice()) > 1 && slices.Contains(list.GetSlice(), ""):
			err = Usagef("--%s has an empty part: %s", f.Name, strings.Join(list.GetSlice(), ","))
		case isList && strings.Join(list.GetSlice(), "") == "", f.Value.Type() == "string" && f.Value.String() == "":
			err = Usagef("--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}
