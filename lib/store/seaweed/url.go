package seaweed

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

const (
	// Scheme is the scheme of the store's URL.
	Scheme = "seaweedfs"

	defaultPort = "8888"
	// grpcOffset lies between a filer's HTTP port and its gRPC port.
	grpcOffset = 10000
)

// syncing says which pieces are on disk before an upload returns.
type syncing string

const (
	syncByRule syncing = ""      // as the filer's rule for the folder says
	syncAlways syncing = "true"  // all
	syncNever  syncing = "false" // none
)

// config is what a URL says.
type config struct {
	filers      []string // host:port of their HTTP, at least one
	folder      string   // clean, never the root
	sync        syncing
	collection  string
	replication string
	disk        string
}

// parseURL reads seaweedfs://HOST[:PORT][,HOST[:PORT]…]/FOLDER[?PARAMETERS].
// Its errors are smq.ErrInvalid.
func parseURL(u *url.URL) (config, error) {
	var c config
	err := c.parse(u)
	if err != nil {
		return config{}, fmt.Errorf("store %q: %w", u.Redacted(), err)
	}
	return c, nil
}

func (c *config) parse(u *url.URL) error {
	switch {
	case u.Scheme != Scheme:
		return fmt.Errorf("%w scheme, want %s", smq.ErrInvalid, Scheme)
	case u.User != nil:
		return fmt.Errorf("%w: it holds a user, which a filer does not know", smq.ErrInvalid)
	case u.Fragment != "":
		return fmt.Errorf("%w: it holds a fragment", smq.ErrInvalid)
	}
	if err := c.parseHosts(u.Host); err != nil {
		return err
	}
	if err := c.parseFolder(u.Path); err != nil {
		return err
	}
	return c.parseParameters(u.RawQuery)
}

func (c *config) parseHosts(hosts string) error {
	for host := range strings.SplitSeq(hosts, ",") {
		addr, err := filerAddress(host)
		if err != nil {
			return err
		}
		if slices.Contains(c.filers, addr) {
			return fmt.Errorf("%w: the filer %s is named twice", smq.ErrInvalid, addr)
		}
		c.filers = append(c.filers, addr)
	}
	return nil
}

// filerAddress completes "host" or "host:port".
func filerAddress(s string) (string, error) {
	u := url.URL{Host: s}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = defaultPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case host == "":
		return "", fmt.Errorf("%w filer %q: it has no host", smq.ErrInvalid, s)
	case err != nil || n == 0 || n+grpcOffset > 65535:
		return "", fmt.Errorf("%w filer %q: the port must leave room for the gRPC port, %d above it", smq.ErrInvalid, s, grpcOffset)
	}
	return net.JoinHostPort(host, port), nil
}

// grpcAddress is where the filer with that address serves gRPC.
func grpcAddress(filer string) string {
	host, port, _ := net.SplitHostPort(filer) // filerAddress made it
	n, _ := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(n+grpcOffset))
}

// reservedFolders are the ones at the top that SeaweedFS keeps its own things
// in: its metadata log, its configuration.
var reservedFolders = []string{"/topics", "/etc"}

func (c *config) parseFolder(path string) error {
	folder := strings.TrimSuffix(path, "/")
	if folder == "" {
		return fmt.Errorf("%w: name a folder, such as /smq: the filer's root holds what is not the store's", smq.ErrInvalid)
	}
	if err := checkPath(folder); err != nil {
		return err
	}
	for _, r := range reservedFolders {
		if folder == r || strings.HasPrefix(folder, r+"/") {
			return fmt.Errorf("%w folder %s: SeaweedFS keeps its own things in %s", smq.ErrInvalid, folder, r)
		}
	}
	c.folder = folder
	return nil
}

func (c *config) parseParameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("%w parameters: %w", smq.ErrInvalid, err)
	}
	for name, v := range values {
		if len(v) != 1 {
			return fmt.Errorf("%w parameter %s: it is given %d times", smq.ErrInvalid, name, len(v))
		}
		if err := c.parameter(name, v[0]); err != nil {
			return err
		}
	}
	return nil
}

func (c *config) parameter(name, value string) error {
	switch name {
	case "fsync":
		c.sync = syncing(value)
		if c.sync != syncAlways && c.sync != syncNever {
			return fmt.Errorf("%w parameter fsync=%s: want true or false", smq.ErrInvalid, value)
		}
	case "collection":
		c.collection = value
	case "replication":
		if len(value) != 3 || strings.Trim(value, "0123456789") != "" {
			return fmt.Errorf("%w parameter replication=%s: want three digits, such as 001", smq.ErrInvalid, value)
		}
		c.replication = value
	case "disk":
		c.disk = value
	default:
		return fmt.Errorf("%w parameter %s: known are fsync, collection, replication and disk", smq.ErrInvalid, name)
	}
	return nil
}

// String is the URL again, the same for all that mean the same.
func (c config) String() string {
	u := url.URL{Scheme: Scheme, Host: strings.Join(c.filers, ","), Path: c.folder}
	q := url.Values{}
	for name, value := range map[string]string{
		"fsync": string(c.sync), "collection": c.collection, "replication": c.replication, "disk": c.disk,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// within is the filer's path of a path of the store.
func (c config) within(path string) string {
	if path == "/" {
		return c.folder
	}
	return c.folder + path
}

// checkPath is store.CheckPath and refuses what protobuf strings cannot hold.
func checkPath(path string) error {
	if err := store.CheckPath(path); err != nil {
		return err
	}
	return checkText(path)
}

// checkDir is store.CheckDir likewise.
func checkDir(dir string) error {
	if err := store.CheckDir(dir); err != nil {
		return err
	}
	return checkText(dir)
}
