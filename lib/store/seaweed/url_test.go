package seaweed

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
)

func TestParseURL(t *testing.T) {
	for in, want := range map[string]struct {
		config config
		text   string
	}{
		"seaweedfs://filer/smq": {
			config{filers: []string{"filer:8888"}, folder: "/smq"}, "seaweedfs://filer:8888/smq",
		},
		"seaweedfs://filer:8889/a/b.c/": {
			config{filers: []string{"filer:8889"}, folder: "/a/b.c"}, "seaweedfs://filer:8889/a/b.c",
		},
		"seaweedfs://f1:8888,f2,10.0.0.1:9/smq?fsync=true": {
			config{filers: []string{"f1:8888", "f2:8888", "10.0.0.1:9"}, folder: "/smq", sync: syncAlways},
			"seaweedfs://f1:8888,f2:8888,10.0.0.1:9/smq?fsync=true",
		},
		"seaweedfs://[::1]:8888/buckets/b?replication=001&fsync=false&disk=ssd&collection=c": {
			config{filers: []string{"[::1]:8888"}, folder: "/buckets/b", sync: syncNever, replication: "001", disk: "ssd", collection: "c"},
			"seaweedfs://[::1]:8888/buckets/b?collection=c&disk=ssd&fsync=false&replication=001",
		},
		"seaweedfs://filer/with%20space/ü": {
			config{filers: []string{"filer:8888"}, folder: "/with space/ü"}, "seaweedfs://filer:8888/with%20space/%C3%BC",
		},
	} {
		got, err := parse(t, in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if !equal(got, want.config) {
			t.Errorf("%s: %+v, want %+v", in, got, want.config)
		}
		if got.String() != want.text {
			t.Errorf("%s prints %s, want %s", in, got, want.text)
		}
		again, err := parse(t, got.String())
		if err != nil || !equal(again, got) {
			t.Errorf("%s printed and read again: %+v, %v", in, again, err)
		}
	}
}

func equal(a, b config) bool {
	return slices.Equal(a.filers, b.filers) && a.folder == b.folder && a.sync == b.sync &&
		a.collection == b.collection && a.replication == b.replication && a.disk == b.disk
}

func parse(t *testing.T, s string) (config, error) {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return parseURL(u)
}

func TestParseURLRefuses(t *testing.T) {
	for in, why := range map[string]string{
		"dir:///smq":                             "scheme",
		"seaweedfs:///smq":                       "no host",
		"seaweedfs://filer":                      "name a folder",
		"seaweedfs://filer/":                     "name a folder",
		"seaweedfs://filer//":                    "",
		"seaweedfs://filer/a/../b":               "dot",
		"seaweedfs://filer/.hidden":              "dot",
		"seaweedfs://filer/topics/x":             "its own things",
		"seaweedfs://filer/etc":                  "its own things",
		"seaweedfs://filer/a%ff":                 "UTF-8",
		"seaweedfs://filer:0/smq":                "port",
		"seaweedfs://filer:60000/smq":            "10000 above",
		"seaweedfs://a,/smq":                     "no host",
		"seaweedfs://a,a:8888/smq":               "twice",
		"seaweedfs://user:pw@filer/smq":          "user",
		"seaweedfs://filer/smq#x":                "fragment",
		"seaweedfs://filer/smq?fsync=yes":        "true or false",
		"seaweedfs://filer/smq?fsync":            "true or false",
		"seaweedfs://filer/smq?fsync=true&fsync": "2 times",
		"seaweedfs://filer/smq?replication=1":    "three digits",
		"seaweedfs://filer/smq?ttl=1d":           "known are",
		"seaweedfs://filer/smq?a;b":              "semicolon",
	} {
		_, err := parse(t, in)
		if !errors.Is(err, smq.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want an smq.ErrInvalid that says %q", in, err, why)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: the error shows the password: %v", in, err)
		}
	}
}

func TestGRPCAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"filer:8888": "filer:18888", "[::1]:8888": "[::1]:18888", "filer:8888.19999": "filer:19999", "filer": "filer",
	} {
		if got := peerGRPC(in); got != want {
			t.Errorf("peerGRPC(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestHarmfulRules(t *testing.T) {
	worm := true
	conf := &pb.FilerConf{Locations: []*pb.FilerConf_PathConf{
		{LocationPrefix: "/smq/", Ttl: "3d"},
		{LocationPrefix: "/", Worm: &worm},
		{LocationPrefix: "/smq/topics/", ReadOnly: true, DisableChunkDeletion: true},
		{LocationPrefix: "/smq2/", ReadOnly: true},
		{LocationPrefix: "/smq/", Collection: "fine"},
	}}
	found := harmfulRules("/smq/", conf)
	if len(found) != 4 {
		t.Errorf("harmfulRules finds %q", found)
	}
}
