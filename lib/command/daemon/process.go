package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smq"
)

// Process is a daemon from its start to its end.
type Process struct {
	Name   string // of what it runs, for messages
	Logger *slog.Logger
	// Ready is closed when it can do its part; ReadyTimeout gives up before
	// that, 0 never.
	Ready        <-chan struct{}
	ReadyTimeout time.Duration
	// Finished is closed when it has come to its end in good order, though no
	// signal told it to; nil: that does not happen.
	Finished <-chan struct{}
	// Failed is closed when it has stopped by itself, and Err then says why;
	// nil: that does not happen.
	Failed  <-chan struct{}
	Err     func() error
	OnReady func() // called once it is ready; nil: nothing is
	// AddrFile, when not empty, gets Addresses once it is ready.
	AddrFile  string
	Addresses []Address
	// Stop ends it in good order, or as soon as ctx ends.
	Stop func(ctx context.Context) error
	// StopTimeout bounds Stop.
	StopTimeout time.Duration
}

// Run waits until ctx ends or the daemon has finished, then stops the daemon in good order: that is a
// success. It fails when the daemon fails, or does not become ready in time.
func (p Process) Run(ctx context.Context) error {
	if p.AddrFile != "" {
		defer os.Remove(p.AddrFile) // what it says is true no more
	}
	err := p.serve(ctx)
	p.notify(sd.SdNotifyStopping)
	if cause := context.Cause(ctx); cause != nil {
		p.Logger.Info("stopping", "cause", cause)
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.StopTimeout)
	defer cancel()
	if stopErr := p.Stop(stopping); err == nil && stopErr != nil {
		err = fmt.Errorf("stop the %s: %w", p.Name, stopErr)
	}
	if err == nil {
		p.Logger.Info("stopped")
		return nil
	}
	// It failed by itself or in stopping, not because of a signal.
	return cli.Exit(cli.ExitCode(err, nil), err)
}

// serve returns nil when it is time to stop.
func (p Process) serve(ctx context.Context) error {
	var late <-chan time.Time
	if p.ReadyTimeout > 0 {
		timer := time.NewTimer(p.ReadyTimeout)
		defer timer.Stop()
		late = timer.C
	}
	ready := p.Ready
	for {
		select {
		case <-ready:
			ready, late = nil, nil
			if p.AddrFile != "" {
				if err := WriteAddresses(p.AddrFile, p.Addresses); err != nil {
					return err
				}
			}
			p.notify(sd.SdNotifyReady)
			if p.OnReady != nil {
				p.OnReady()
			}
			p.Logger.Info("ready", p.fields()...)
		case <-late:
			return fmt.Errorf("the %s is not ready after %v: %w", p.Name, p.ReadyTimeout, smq.ErrTimeout)
		case <-p.Failed:
			if err := p.Err(); err != nil {
				return err
			}
			return fmt.Errorf("the %s has stopped by itself", p.Name)
		case <-p.Finished:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (p Process) fields() []any {
	var fields []any
	for _, a := range p.Addresses {
		if a.Value != "" {
			fields = append(fields, a.Name, a.Value)
		}
	}
	return fields
}

// notify tells the service manager, if there is one.
func (p Process) notify(state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		p.Logger.Warn("cannot tell the service manager", "state", state, "error", err)
	}
}
