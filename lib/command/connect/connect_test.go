package connect

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestDialNamesWhatIsMissing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // nobody listens there now
	var stderr bytes.Buffer
	e := &cli.Env{Name: "smq-test", Stderr: &stderr}
	e.Flags.Masters = []string{address}
	e.Flags.Timeout = cli.Duration(300 * time.Millisecond)
	_, err = Dial(t.Context(), e, slog.New(slog.DiscardHandler))
	want := "no master answers at " + address + " (" + syscall.ECONNREFUSED.Error() + "); start one (smq-admin up) or name it with --master or SMQ_MASTER"
	if err == nil || err.Error() != want || !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if stderr.Len() > 0 {
		t.Errorf("said %q at once", stderr.String())
	}
}

func TestSayLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		say := func() { said.WriteString("x") }
		sayLater(time.Second, say)()
		stop := sayLater(time.Second, say)
		time.Sleep(time.Second)
		stop()
		if said.String() != "x" {
			t.Errorf("said %q", said.String())
		}
	})
}
