package connect

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"testing"
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

func TestWhichTopicIsMeant(t *testing.T) {
	names := []string{"orders", "payments", "shop/clicks", "shop/orders-old"}
	for typed, want := range map[string]string{
		"order": ", did you mean orders?", "paymnets": ", did you mean payments?", "clicks": ", did you mean shop/clicks?",
		"shpo/clicks": ", did you mean shop/clicks?", "other/orders": ", did you mean orders?", "zebra": "",
	} {
		topic, err := smq.ParseTopic(typed)
		if err != nil {
			t.Fatal(err)
		}
		if got := nearest(topic, names); got != want {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
	}
	if got := Meant(t.Context(), nil, smq.Topic{Name: "order"}); got != "" {
		t.Errorf("without a client: %q", got)
	}
}

func TestLinesForPeople(t *testing.T) {
	var stderr bytes.Buffer
	e := &cli.Env{Name: "smq-test", Stderr: &stderr}
	log := slog.New(lines{e: e}).With("topic", "t")
	log.Debug("unheard of")
	log.Warn("no acks for 3s, trying again", "error", smq.ErrNoSpace)
	log.Info("acks come again", "after", 5*time.Second)
	e.Flags.Quiet = true
	log.Warn("not with -q")
	want := "smq-test: warning: no acks for 3s, trying again, topic t: no space left\nsmq-test: acks come again, topic t, after 5s\n"
	if got := stderr.String(); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
