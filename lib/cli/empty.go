package cli

import (
	"slices"

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
		if err == nil && f.Annotations[mayBeEmpty] == nil && isEmpty(f.Value) {
			err = Usagef("--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

// isEmpty reports whether a text is empty, or whether a list has none or an empty one.
func isEmpty(value pflag.Value) bool {
	switch v := value.(type) {
	case pflag.SliceValue:
		return len(v.GetSlice()) == 0 || slices.Contains(v.GetSlice(), "")
	default:
		return v.Type() == "string" && v.String() == ""
	}
}
