package client

import "time"

// alarm is a timer for whatever is due next. Its user's lock guards it.
type alarm struct {
	now   clock
	timer *time.Timer
	at    time.Duration // when it rings; 0: it does not
	off   bool          // for good
}

// newAlarm makes an alarm that calls ring in a goroutine of its own.
func newAlarm(now clock, ring func()) *alarm {
	a := &alarm{now: now, timer: time.AfterFunc(time.Hour, ring)}
	a.timer.Stop()
	return a
}

// set makes the alarm ring at a time, or earlier.
func (a *alarm) set(at time.Duration) {
	if a.off || a.at != 0 && a.at <= at {
		return
	}
	a.at = at
	a.timer.Reset(at - a.now())
}

// rang is called when the alarm rings. It reports whether it still should.
func (a *alarm) rang() bool {
	a.at = 0
	return !a.off
}

// stop silences the alarm for good.
func (a *alarm) stop() {
	a.off = true
	a.timer.Stop()
}
