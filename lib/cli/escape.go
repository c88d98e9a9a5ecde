package cli

import (
	"strconv"
	"strings"
)

var escapes = map[byte]byte{'t': '\t', 'n': '\n', 'r': '\r', '0': 0, '\\': '\\'}

// Unescape reads text with the escapes \t \n \r \0 \\ and \xNN.
func Unescape(s string) ([]byte, error) {
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		if i == len(s) {
			return nil, Usagef(`%q ends with a backslash; write \\ for one`, s)
		}
		if c, ok := escapes[s[i]]; ok {
			out = append(out, c)
			continue
		}
		if s[i] == 'x' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
		}
		return nil, Usagef(`unknown escape \%c in %q; there are \t \n \r \0 \\ and \xNN`, s[i], s)
	}
	return out, nil
}

// Layout prepares a template for franz-go's readers and formatters, which know
// no \0.
func Layout(template string) string {
	if !strings.Contains(template, `\0`) {
		return template
	}
	var out strings.Builder
	for i := 0; i < len(template); i++ {
		out.WriteByte(template[i])
		if template[i] != '\\' || i+1 == len(template) {
			continue
		}
		i++
		if template[i] == '0' {
			out.WriteString("x00")
		} else {
			out.WriteByte(template[i])
		}
	}
	return out.String()
}
