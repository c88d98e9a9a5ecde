package cli

import (
	"bytes"
	"fmt"
	"testing"
)

type pet struct {
	Name string `json:"name"`
	Legs int    `json:"leg_count"`
}

var pets = View[pet]{
	Name: func(p pet) string { return p.Name },
	Columns: []Column[pet]{
		{Header: "NAME", Cell: func(p pet) string { return p.Name }},
		{Header: "LEG_COUNT", Cell: func(p pet) string { return fmt.Sprint(p.Legs) }, Right: true},
		{Header: "NOTE", Cell: func(p pet) string { return "" }},
	},
}

func TestList(t *testing.T) {
	two := []pet{{"rex", 4}, {"a\tparrot <b>", 2}}
	tests := []struct {
		format Format
		items  []pet
		want   string
	}{
		{FormatTable, two, "NAME           LEG_COUNT   NOTE\nrex                    4\na parrot <b>           2\n"},
		{FormatTable, nil, "NAME   LEG_COUNT   NOTE\n"},
		{FormatPlain, two, "rex\t4\t\na parrot <b>\t2\t\n"},
		{FormatPlain, nil, ""},
		{FormatName, two, "rex\na\tparrot <b>\n"},
		{FormatJSON, two, "[\n  {\n    \"name\": \"rex\",\n    \"leg_count\": 4\n  },\n  {\n    \"name\": \"a\\tparrot <b>\",\n    \"leg_count\": 2\n  }\n]\n"},
		{FormatJSON, nil, "[]\n"},
		{FormatYAML, []pet{{"rex", 4}, {"123", 0}, {"yes", 1}}, "- name: rex\n  leg_count: 4\n- name: \"123\"\n  leg_count: 0\n- name: \"yes\"\n  leg_count: 1\n"},
		{FormatYAML, nil, "[]\n"},
	}
	for _, test := range tests {
		var out bytes.Buffer
		e := &Env{Stdout: &out, Flags: Flags{Output: test.format}}
		if err := pets.List(e, test.items); err != nil || out.String() != test.want {
			t.Errorf("%s %v: %v\ngot  %q\nwant %q", test.format, test.items, err, out.String(), test.want)
		}
	}
}

func TestPlainIsRaw(t *testing.T) {
	view := View[pet]{Columns: []Column[pet]{
		{Header: "WHO", Cell: func(p pet) string { return p.Name }},
		{Header: "LEGS", Cell: func(p pet) string { return "many" }, Raw: func(p pet) []string { return []string{fmt.Sprint(p.Legs), "left\tright"} }},
	}}
	var out bytes.Buffer
	e := &Env{Stdout: &out, Flags: Flags{Output: FormatPlain}}
	if err := view.List(e, []pet{{"rex", 4}}); err != nil || out.String() != "rex\t4\tleft right\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestOne(t *testing.T) {
	tests := map[Format]string{
		FormatTable: "name:      rex\nleg count: 4\nnote:      \nmore\n",
		FormatPlain: "rex\t4\t\n",
		FormatName:  "rex\n",
		FormatJSON:  "{\n  \"name\": \"rex\",\n  \"leg_count\": 4\n}\n",
		FormatYAML:  "name: rex\nleg_count: 4\n",
	}
	for format, want := range tests {
		var out bytes.Buffer
		e := &Env{Stdout: &out, Flags: Flags{Output: format}}
		err := pets.One(e, pet{"rex", 4}, func() error { return writeOut(&out, "more\n") })
		if err != nil || out.String() != want {
			t.Errorf("%s: %v\ngot  %q\nwant %q", format, err, out.String(), want)
		}
	}
}
