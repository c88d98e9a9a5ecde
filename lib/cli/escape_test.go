package cli

import "testing"

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "abc": "abc", `\t\n\r\0\\`: "\t\n\r\x00\\", `a\x00\xffb`: "a\x00\xffb", `\\n`: `\n`, "é→": "é→",
	} {
		if got, err := Unescape(text); err != nil || string(got) != want {
			t.Errorf("Unescape(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`\`, `a\`, `\q`, `\x`, `\x1`, `\xzz`} {
		if got, err := Unescape(text); ExitCode(err, nil) != ExitUsage {
			t.Errorf("Unescape(%q) = %q, %v, want a usage error", text, got, err)
		}
	}
}

func TestLayout(t *testing.T) {
	for text, want := range map[string]string{`%v\n`: `%v\n`, `%v\0`: `%v\x00`, `\\0\0`: `\\0\x00`, `\`: `\`, `a\0b\`: `a\x00b\`} {
		if got := Layout(text); got != want {
			t.Errorf("Layout(%q) = %q, want %q", text, got, want)
		}
	}
}
