package pub

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/seaweedmq/smq/lib/cli"
)

// input is a file, or standard input, to be read.
type input struct {
	name  string
	stdin bool
	info  os.FileInfo // nil when nothing is known
	open  func() (io.ReadCloser, error)
}

// findInputs checks the files before anything is sent: a mistyped name must
// not leave half of the work done. Without files it is standard input, which
// "-" names too.
func findInputs(e *cli.Env, files []string) ([]input, error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	var inputs []input
	for _, path := range files {
		if path == "-" {
			inputs = append(inputs, standardInput(e.Stdin))
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot read %s: %w", path, reason(err))
		case info.IsDir():
			return nil, cli.Usagef("cannot read %s: it is a folder", path)
		}
		inputs = append(inputs, input{name: path, info: info, open: func() (io.ReadCloser, error) { return os.Open(path) }})
	}
	return inputs, nil
}

func standardInput(stdin io.Reader) input {
	in := input{name: "standard input", stdin: true, open: func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil }}
	if f, ok := stdin.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			in.info = info
		}
	}
	return in
}

// joined makes one input of several, for formats in which the whole input is
// one message.
func joined(inputs []input) []input {
	if len(inputs) == 1 {
		return inputs
	}
	stdin := slices.ContainsFunc(inputs, func(in input) bool { return in.stdin })
	return []input{{name: inputs[0].name + " and more", stdin: stdin, open: func() (io.ReadCloser, error) {
		return &chain{inputs: inputs}, nil
	}}}
}

// totalSize is the number of bytes in the inputs, 0 when some of them do not
// say.
func totalSize(inputs []input) int64 {
	var total int64
	for _, in := range inputs {
		if in.info == nil || !in.info.Mode().IsRegular() {
			return 0
		}
		total += in.info.Size()
	}
	return total
}

// chain reads inputs one after the other.
type chain struct {
	inputs  []input
	current io.ReadCloser
}

func (c *chain) Read(p []byte) (int, error) {
	for len(c.inputs) > 0 {
		if c.current == nil {
			file, err := c.inputs[0].open()
			if err != nil {
				return 0, err
			}
			c.current = file
		}
		n, err := c.current.Read(p)
		if n > 0 || err == nil {
			return n, nil // an error comes again
		}
		if err != io.EOF {
			return 0, fmt.Errorf("%s: %w", c.inputs[0].name, reason(err))
		}
		c.current.Close() // only read
		c.current, c.inputs = nil, c.inputs[1:]
	}
	return 0, io.EOF
}

func (c *chain) Close() error {
	if c.current != nil {
		return c.current.Close()
	}
	return nil
}

// reason takes the operation and path off an error of package os.
func reason(err error) error {
	if pathError := new(os.PathError); errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
