package torture

import (
	"errors"
	"io"

	"github.com/seaweedmq/smq/lib/torture/check"
)

// Report is what a run has found.
type Report struct {
	Seed       uint64 `json:"seed"`
	DurationMS int64  `json:"duration_ms"` // of the faults
	TookMS     int64  `json:"took_ms"`     // of everything
	Store      string `json:"store"`
	Masters    int    `json:"masters"`
	Brokers    int    `json:"brokers"`
	Topics     int    `json:"topics"`
	Partitions int32  `json:"partitions"` // of each topic
	Replicas   int32  `json:"replicas"`   // of each topic

	Operations int `json:"operations"`
	check.Statistics
	Verified   Verified       `json:"verified"`
	Undecided  []string       `json:"undecided"` // partitions whose linearizability could not be decided
	Violations check.Findings `json:"violations"`
	Excused    check.Findings `json:"excused"` // what a replicated ack does not promise
	// History is the file with all events, Dir the directory with it, the logs
	// and, if it is a directory, the store. They are empty when nothing is kept.
	History string `json:"history"`
	Dir     string `json:"dir"`
}

// newReport is a history's part of a report.
func newReport(r check.Result) Report {
	report := Report{
		Operations: r.Statistics.Operations(), Statistics: r.Statistics,
		Undecided: r.Undecided, Violations: r.Violations, Excused: r.Excused,
	}
	if report.Undecided == nil {
		report.Undecided = []string{}
	}
	if report.Violations == nil {
		report.Violations = check.Findings{}
	}
	if report.Excused == nil {
		report.Excused = check.Findings{}
	}
	return report
}

// CheckHistory checks a history that was kept. One that was cut off before its
// end is an error: it does not say what was read back.
func CheckHistory(history io.Reader) (Report, error) {
	c := check.New(check.Options{})
	if err := check.ReadHistory(history, c.Add); err != nil {
		return Report{}, err
	}
	if !c.Complete() {
		return Report{}, errors.New("the history ends before everything was read back: what was lost and what was not cannot be told from it")
	}
	return newReport(c.Finish()), nil
}
