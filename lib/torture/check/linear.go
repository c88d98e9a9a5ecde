package check

import (
	"fmt"
	"io"
	"math"

	"github.com/anishathalye/porcupine"
)

// logState is a partition as the model has it: how long it is, and its last
// message.
type logState struct {
	end  int64
	last Message
}

// appendOp is the append of a message, which got an offset.
type appendOp struct {
	message Message
	offset  int64
}

// tailOp is a question for a partition's end, and the answer.
type tailOp struct {
	end  int64
	last Message // none: only the end was asked for
}

// model is what a partition must do as if it did one thing after the other: an
// append gets the next offset, a question for the end is answered with it.
var model = porcupine.Model{
	Init: func() any { return logState{} },
	Step: func(state, input, _ any) (bool, any) {
		s := state.(logState)
		switch op := input.(type) {
		case appendOp:
			return op.offset == s.end, logState{end: s.end + 1, last: op.message}
		case tailOp:
			return op.end == s.end && (op.last == Message{} || op.last == s.last), s
		}
		return false, s
	},
	DescribeOperation: func(input, _ any) string { return describe(input) },
	DescribeState: func(state any) string {
		s := state.(logState)
		return fmt.Sprintf("%d messages, the last %v", s.end, s.last)
	},
}

func describe(op any) string {
	switch op := op.(type) {
	case appendOp:
		return fmt.Sprintf("message %v got offset %d", op.message, op.offset)
	case tailOp:
		if op.last == (Message{}) {
			return fmt.Sprintf("the end was %d", op.end)
		}
		return fmt.Sprintf("the end was %d, and the message before it %v", op.end, op.last)
	}
	return fmt.Sprint(op)
}

// operations are the partition's appends and the questions for its end.
// A message without an answer may have been appended at any time after it was
// sent.
func (c *Checker) operations(l *log) []porcupine.Operation {
	var ops []porcupine.Operation
	for offset, m := range l.final {
		p := c.publishers[m.Publisher]
		if p == nil || p.fate(m.Number) == nil {
			continue // a phantom, found before
		}
		f := p.fate(m.Number)
		op := porcupine.Operation{ClientId: int(m.Publisher), Input: appendOp{m, int64(offset)}, Call: f.sent, Return: math.MaxInt64}
		if f.outcome == Acked {
			op.Return = f.answered
		}
		ops = append(ops, op)
	}
	for _, e := range l.tails {
		op := tailOp{end: e.Offset}
		if len(e.Messages) > 0 {
			op.last = e.Messages[0]
		}
		ops = append(ops, porcupine.Operation{Input: op, Call: e.Called, Return: e.At})
	}
	return ops
}

// checkLinear checks a topic's partitions. It returns the names of those that
// could not be decided in time.
func (c *Checker) checkLinear(t *topic) (undecided []string) {
	for _, l := range t.logs {
		name := fmt.Sprintf("%s/%d", l.topic, l.partition)
		if !l.whole() {
			undecided = append(undecided, name) // what could not be read is missing
			continue
		}
		ops := c.operations(l)
		c.stats.Linear += len(ops)
		switch porcupine.CheckOperationsTimeout(model, ops, c.options.LinearTimeout) {
		case porcupine.Unknown:
			undecided = append(undecided, name)
		case porcupine.Illegal:
			if len(l.unclean) > 0 {
				// What the seal has lost is missing.
				c.excused.add(NotLinearizable, name)
			} else {
				c.explain(name, ops)
			}
		}
	}
	return undecided
}

// explain says which operation fits in nowhere, as far as that can be said.
func (c *Checker) explain(name string, ops []porcupine.Operation) {
	_, info := porcupine.CheckOperationsVerbose(model, ops, c.options.LinearTimeout)
	c.violation(NotLinearizable, "%s: %s", name, misfit(info, ops))
	c.pictures = append(c.pictures, Picture{name, func(w io.Writer) error { return porcupine.Visualize(model, info, w) }})
}

// misfit describes the first operation, by its return, that the longest order
// found has no place for.
func misfit(info porcupine.LinearizationInfo, ops []porcupine.Operation) string {
	fits := make(map[any]bool)
	longest := 0
	for _, partials := range info.PartialLinearizationsOperations() {
		for _, p := range partials {
			if len(p) <= longest {
				continue
			}
			longest = len(p)
			clear(fits)
			for _, op := range p {
				fits[key(op)] = true
			}
		}
	}
	first := porcupine.Operation{Return: math.MaxInt64}
	for _, op := range ops {
		if !fits[key(op)] && op.Return <= first.Return {
			first = op
		}
	}
	if first.Input == nil {
		return "no order explains it"
	}
	return fmt.Sprintf("%s, asked at %s and answered at %s, fits in nowhere behind %d operations", describe(first.Input), clock(first.Call), clock(first.Return), longest)
}

// key tells operations apart.
func key(op porcupine.Operation) any {
	return struct {
		input     any
		call, ret int64
	}{op.Input, op.Call, op.Return}
}
