package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// binaries are the names of all programs, each a section of the configuration
// file.
var binaries = []string{"smq-master", "smq-broker", "smq-pub", "smq-sub", "smq-admin"}

// onlyTyped are the flags that mean something on a command line only.
var onlyTyped = []string{"help", "version", "config"}

// keyDelimiter separates the parts of a key in koanf. Names hold no slash.
const keyDelimiter = "/"

// Configure gives the flags that the command line leaves alone their values
// from the environment and from the configuration file. It is called before a
// command runs; completions call it themselves.
func (e *Env) Configure(cmd *cobra.Command) error {
	values := koanf.New(keyDelimiter)
	file, err := e.configFile()
	if err == nil && file != "" {
		err = e.loadFile(values, file, cmd)
	}
	if err == nil {
		err = values.Load(environment{e, cmd}, nil)
	}
	if err != nil {
		return Exit(ExitUsage, err)
	}
	if err := e.setFlags(cmd, values); err != nil {
		return err
	}
	for i, master := range e.Flags.Masters {
		e.Flags.Masters[i] = strings.TrimSpace(master) // as in "a:7300, b:7300"
	}
	return nil
}

// configured is the annotation of flags whose value is not from the command line.
const configured = "smq_configured"

// Typed reports whether a flag stands on the command line, and does not just have its
// value from the environment or from the configuration file, as one may have that is for
// all commands.
func Typed(f *pflag.FlagSet, name string) bool {
	flag := f.Lookup(name)
	return flag != nil && flag.Changed && flag.Annotations[configured] == nil
}

func (e *Env) setFlags(cmd *cobra.Command, values *koanf.Koanf) error {
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value := values.Get(strings.Join(flagPath(cmd, f), keyDelimiter))
		if f.Changed || value == nil || failed != nil {
			return
		}
		for _, text := range texts(value) {
			if err := cmd.Flags().Set(f.Name, text); err != nil {
				if value := new(pflag.InvalidValueError); errors.As(err, &value) {
					err = badValue(value)
				}
				failed = Usagef("%s, or %s in the configuration file: %w", variable(cmd, f), strings.Join(flagPath(cmd, f), "."), err)
			}
		}
		must(cmd.Flags().SetAnnotation(f.Name, configured, []string{"true"}))
	})
	return failed
}

// texts is a value of the configuration as flags read it: one text, or
// several for a list.
func texts(value any) []string {
	list, ok := value.([]any)
	if !ok {
		return []string{fmt.Sprint(value)}
	}
	var all []string
	for _, v := range list {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// flagPath is the place of a flag in the configuration file.
func flagPath(cmd *cobra.Command, f *pflag.Flag) []string {
	if slices.Contains(globalFlags, f.Name) {
		return []string{f.Name}
	}
	return append(strings.Fields(cmd.CommandPath()), f.Name)
}

// variable is the environment variable of a flag.
func variable(cmd *cobra.Command, f *pflag.Flag) string {
	path := flagPath(cmd, f)
	path[0] = strings.TrimPrefix(path[0], "smq-")
	return "SMQ_" + strings.ToUpper(strings.ReplaceAll(strings.Join(path, "_"), "-", "_"))
}

// configFile is the path of the configuration file, empty when there is none
// and none was asked for.
func (e *Env) configFile() (string, error) {
	named := e.Flags.Config
	if named == "" {
		named = e.Getenv("SMQ_CONFIG")
	}
	if named != "" {
		return named, nil
	}
	folder := e.Getenv("XDG_CONFIG_HOME")
	if folder == "" {
		home := e.Getenv("HOME")
		if home == "" {
			return "", nil
		}
		folder = filepath.Join(home, ".config")
	}
	path := filepath.Join(folder, "smq", "config.yaml")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return "", nil
	}
	return path, nil
}

func (e *Env) loadFile(values *koanf.Koanf, path string, cmd *cobra.Command) error {
	if err := values.Load(yamlFile(path), nil); err != nil {
		return err
	}
	if err := checkKeys(values.Raw(), cmd.Root()); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	return nil
}

// checkKeys finds keys that mean nothing: they are mistakes that would
// otherwise pass in silence. Sections of other binaries are theirs to check.
func checkKeys(values map[string]any, root *cobra.Command) error {
	for key, value := range values {
		switch {
		case key == root.Name():
			if err := checkSection(value, root); err != nil {
				return err
			}
		case !slices.Contains(binaries, key) && !slices.Contains(globalFlags, key):
			return fmt.Errorf("unknown key %q%s", key, didYouMean(key, slices.Concat(globalFlags, binaries), ""))
		}
	}
	return nil
}

func checkSection(value any, cmd *cobra.Command) error {
	section, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is not a section", cmd.CommandPath())
	}
	var names []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	commands := map[string]*cobra.Command{}
	for _, c := range cmd.Commands() {
		commands[c.Name()] = c
		names = append(names, c.Name())
	}
	for key, value := range section {
		if c := commands[key]; c != nil {
			if err := checkSection(value, c); err != nil {
				return err
			}
		} else if !slices.Contains(names, key) {
			return fmt.Errorf("unknown key %q below %s%s", key, cmd.CommandPath(), didYouMean(key, names, ""))
		}
	}
	return nil
}

// yamlFile provides the configuration file to koanf.
type yamlFile string

// Read parses the file. Underscores in keys are read as dashes.
func (path yamlFile) Read() (map[string]any, error) {
	content, err := os.ReadFile(string(path))
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", string(path), bare(err))
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(content, &values); err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", string(path), err)
	}
	return dashed(values), nil
}

// ReadBytes is the other way to provide, which koanf does not use here.
func (path yamlFile) ReadBytes() ([]byte, error) { return os.ReadFile(string(path)) }

func dashed(values map[string]any) map[string]any {
	result := make(map[string]any, len(values))
	for key, value := range values {
		if section, ok := value.(map[string]any); ok {
			value = dashed(section)
		}
		result[strings.ReplaceAll(key, "_", "-")] = value
	}
	return result
}

// environment provides the variables of a command's flags to koanf.
type environment struct {
	env *Env
	cmd *cobra.Command
}

// Read collects the variables that are set.
func (v environment) Read() (map[string]any, error) {
	values := map[string]any{}
	v.cmd.Flags().VisitAll(func(f *pflag.Flag) {
		text := v.env.Getenv(variable(v.cmd, f))
		if text == "" || slices.Contains(onlyTyped, f.Name) {
			return
		}
		section := values
		path := flagPath(v.cmd, f)
		for _, name := range path[:len(path)-1] {
			if section[name] == nil {
				section[name] = map[string]any{}
			}
			section = section[name].(map[string]any)
		}
		section[path[len(path)-1]] = text
	})
	return values, nil
}

// ReadBytes is the other way to provide, which the environment does not have.
func (v environment) ReadBytes() ([]byte, error) {
	return nil, errors.New("the environment has no bytes")
}
