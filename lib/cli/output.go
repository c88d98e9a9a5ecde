package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
	"go.yaml.in/yaml/v3"
)

// Format is how lists and things are printed; a flag value.
type Format string

// The formats. JSON and YAML are one document with snake_case keys and raw
// numbers, to which keys are only ever added. Plain is a line a row, its values
// separated by tabs, without a header, units or rounding. Name is the names alone.
const (
	FormatTable Format = "table"
	FormatJSON  Format = "json"
	FormatYAML  Format = "yaml"
	FormatPlain Format = "plain"
	FormatName  Format = "name"
)

var formatNames = []string{"table", "json", "yaml", "plain", "name"}

// String is the format's name.
func (f *Format) String() string { return string(*f) }

// Set checks and takes a name.
func (f *Format) Set(s string) error {
	if err := OneOf("format", s, formatNames...); err != nil {
		return err
	}
	*f = Format(s)
	return nil
}

// Type is how help texts name the value.
func (f *Format) Type() string { return "FORMAT" }

// Column is one column of a table of T.
type Column[T any] struct {
	Header string
	Cell   func(T) string
	Right  bool // numbers are aligned to the right
	// Raw are the values that Cell tells people, each by itself, for the plain
	// format; nil: the one value is what Cell says.
	Raw func(T) []string
}

// View is how things of one kind are printed. As JSON and YAML, a T is printed
// by its own json tags.
type View[T any] struct {
	Columns []Column[T]
	Name    func(T) string
}

// List prints items in the format that --output asks for.
func (v View[T]) List(e *Env, items []T) error {
	switch e.Flags.Output {
	case FormatJSON, FormatYAML:
		if items == nil {
			items = []T{} // prints as [], not as null
		}
		return document(e, items)
	case FormatName:
		var names strings.Builder
		for _, item := range items {
			fmt.Fprintln(&names, v.Name(item))
		}
		return writeOut(e.Stdout, names.String())
	case FormatPlain:
		return v.plain(e.Stdout, items)
	}
	return v.table(e, items)
}

// One prints a single thing: its columns as lines of a name and a value, and
// then, for people, what more prints.
func (v View[T]) One(e *Env, item T, more func() error) error {
	switch e.Flags.Output {
	case FormatJSON, FormatYAML:
		return document(e, item)
	case FormatName, FormatPlain:
		return v.List(e, []T{item})
	}
	width := 0
	for _, c := range v.Columns {
		width = max(width, len(c.Header))
	}
	var lines strings.Builder
	for _, c := range v.Columns {
		name := strings.ToLower(strings.ReplaceAll(c.Header, "_", " "))
		fmt.Fprintf(&lines, "%-*s %s\n", width+1, name+":", printable(c.Cell(item)))
	}
	if err := writeOut(e.Stdout, lines.String()); err != nil || more == nil {
		return err
	}
	return more()
}

// Table prints items as a table whatever --output says, for parts of what One
// prints.
func (v View[T]) Table(e *Env, items []T) error { return v.table(e, items) }

func (v View[T]) plain(w io.Writer, items []T) error {
	var lines strings.Builder
	for _, item := range items {
		var values []string
		for _, c := range v.Columns {
			if c.Raw != nil {
				values = append(values, c.Raw(item)...)
			} else {
				values = append(values, c.Cell(item))
			}
		}
		for i, value := range values {
			values[i] = printable(value)
		}
		lines.WriteString(strings.Join(values, "\t") + "\n")
	}
	return writeOut(w, lines.String())
}

func (v View[T]) cells(item T) []string {
	cells := make([]string, len(v.Columns))
	for i, c := range v.Columns {
		cells[i] = printable(c.Cell(item))
	}
	return cells
}

func (v View[T]) table(e *Env, items []T) error {
	var headers []string
	var align []tw.Align
	for _, c := range v.Columns {
		headers = append(headers, c.Header)
		if c.Right {
			align = append(align, tw.AlignRight)
		} else {
			align = append(align, tw.AlignLeft)
		}
	}
	var page bytes.Buffer
	t := tablewriter.NewTable(&page, tableStyle(align)...)
	t.Header(headers)
	for _, item := range items {
		if err := t.Append(v.cells(item)); err != nil {
			return err
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	return writeOut(e.Stdout, trimRight(page.String()))
}

// tableStyle is a table without lines, for people and for cut and awk.
func tableStyle(align []tw.Align) []tablewriter.Option {
	none := tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off}
	return []tablewriter.Option{
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  none,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Right: "   ", Overwrite: true}),
		tablewriter.WithAlignment(align),
	}
}

func trimRight(page string) string {
	lines := strings.Split(page, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// document prints v as JSON or YAML.
func document(e *Env, v any) error {
	text, err := marshal(v)
	if err != nil {
		return err
	}
	if e.Flags.Output == FormatYAML {
		if text, err = toYAML(text); err != nil {
			return err
		}
	}
	return writeOut(e.Stdout, string(text))
}

func marshal(v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return text.Bytes(), err
}

// toYAML turns a JSON document into YAML with the same keys in the same order.
func toYAML(text []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	blockStyle(&node)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	err := enc.Encode(&node)
	return out.Bytes(), err
}

// truthWords stay quoted: readers of YAML 1.1 take them for truth values.
var truthWords = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true}

func blockStyle(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode && !truthWords[strings.ToLower(n.Value)] {
		n.Style = 0
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

func writeOut(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}
