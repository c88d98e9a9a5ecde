package daemon

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Address is one line of an address file.
type Address struct {
	Name  string // grpc, http, raft …
	Value string // host:port
}

// WriteAddresses writes a file for scripts that have to know where a daemon
// listens, above all when it chose a port itself: a JSON object if the name ends
// in .json, else NAME=VALUE lines with names in capitals. It appears whole, once
// the daemon is ready. Addresses without a value are left out.
func WriteAddresses(path string, addresses []Address) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot write the address file: %w", err)
	}
	defer os.Remove(temp.Name()) // fails when it was renamed, as it should be
	_, err = temp.WriteString(formatAddresses(addresses, strings.HasSuffix(path, ".json")))
	if err == nil {
		err = temp.Chmod(0o644)
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write the address file: %w", err)
	}
	return nil
}

func formatAddresses(addresses []Address, asJSON bool) string {
	var text strings.Builder
	for _, a := range addresses {
		switch {
		case a.Value == "":
		case asJSON:
			name, value := quote(a.Name), quote(a.Value)
			if text.Len() > 0 {
				text.WriteString(",")
			}
			text.WriteString(name + ":" + value)
		default:
			fmt.Fprintf(&text, "%s=%s\n", strings.ToUpper(a.Name), a.Value)
		}
	}
	if asJSON {
		return "{" + text.String() + "}\n"
	}
	return text.String()
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always has a JSON form
	}
	return string(b)
}

// Bound is the address that l listens on, empty when there is none.
func Bound(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}
