package sim

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// chooser decides how a run goes on: with the choice of the returned index, or,
// if it is -1, not at all.
type chooser func(w *world, depth int, labels []string, left budget) (int, error)

// execute makes one run in a bubble of its own. Promises are checked before
// the choice numbered from and after each from there on.
func execute(t *testing.T, sc scenario, left budget, from int, choose chooser) (err error) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		sc.build(w)
		defer w.teardown()
		for depth := 0; ; depth++ {
			if depth == endless {
				err = Violated("answers", "the run comes to no end")
				return
			}
			w.settle()
			if depth >= from {
				if err = w.check(t.Context()); err != nil {
					return
				}
			}
			choices := w.choices(sc.faults, left)
			if len(choices) == 0 {
				break
			}
			var i int
			if i, err = choose(w, depth, labelled(choices), left); i < 0 || err != nil {
				return
			}
			left = left.less(choices[i].cost)
			if choices[i].by != "" {
				w.turn = choices[i].by
			}
			if choices[i].do == nil {
				break
			}
			choices[i].do()
		}
		err = w.finish(t.Context())
	})
	return err
}

// endless is a number of choices that no run needs.
const endless = 200

func labelled(choices []choice) []string {
	labels := make([]string, len(choices))
	for i := range choices {
		labels[i] = choices[i].label
	}
	return labels
}

// settle lets everybody run until only choices can move anything.
func (w *world) settle() {
	for again := true; again; {
		time.Sleep(tick)
		synctest.Wait()
		for _, a := range w.actors {
			a.begin()
		}
		synctest.Wait()
		again = w.dismiss()
	}
}

// dismiss lets those who try to open or seal know when the name that they wait
// to create has been taken. That is no choice: whenever they hear of it, they
// look at the store as it is then, and wait for the next name or give up. An
// owner is another matter; it takes batches as long as it does not know.
func (w *world) dismiss() bool {
	any := false
	for _, s := range w.gate.steps() {
		if s.verb == "create" && w.gate.markOf(s.path) != 0 && !w.nodeOf(s.proc.name).owns() {
			w.gate.perform(s)
			any = true
		}
	}
	return any
}

// choices lists what may happen next, the same in every run that came here.
func (w *world) choices(faults []mishap, left budget) []choice {
	var list []choice
	for _, s := range w.gate.steps() {
		list = append(list, choice{label: s.label(), by: s.proc.name, do: func() { w.gate.perform(s) }})
	}
	for _, a := range w.actors {
		list = append(list, a.choices()...)
	}
	if !slices.ContainsFunc(list, func(c choice) bool { return !c.optional }) {
		list = append([]choice{{label: "end"}}, list...)
	}
	for _, l := range w.gate.lates() {
		list = append(list, choice{label: l.label(), optional: true, do: func() { w.gate.performLate(l) }})
	}
	list = append(list, w.faults(faults)...)
	if left.turns < anyTurns/2 {
		chargeTurns(list, w.turn)
	}
	list = slices.DeleteFunc(list, func(c choice) bool { return !left.covers(c.cost) })
	if len(list) == 1 && list[0].do == nil {
		return nil // nothing but the end
	}
	return list
}

// chargeTurns makes it cost a turn to leave somebody who could go on.
func chargeTurns(list []choice, turn string) {
	if turn == "" || !slices.ContainsFunc(list, func(c choice) bool { return c.by == turn && c.cost == budget{} }) {
		return
	}
	for i := range list {
		if by := list[i].by; by != "" && by != turn {
			list[i].cost.turns = 1
		}
	}
}

// faults lists what may go wrong: only where it makes a difference.
func (w *world) faults(faults []mishap) []choice {
	var list []choice
	crashed := make(map[string]bool)
	for _, s := range w.gate.steps() {
		if s.verb == "create" && w.gate.markOf(s.path) != 0 {
			continue // the name is taken: nothing can happen to it any more
		}
		for _, f := range faults {
			list = append(list, choice{label: s.label() + " = " + f.name, by: s.proc.name, cost: budget{faults: 1}, do: func() { f.apply(w.gate, s) }})
		}
	}
	for _, s := range w.gate.steps() {
		if name := s.proc.name; !crashed[name] && w.mayCrash(w.nodeOf(name)) {
			crashed[name] = true
			list = append(list, choice{label: name + ": crash", cost: budget{crashes: 1}, do: func() { w.crash(w.nodeOf(name)) }})
		}
	}
	return list
}

func (w *world) nodeOf(name string) *node {
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.name == name })
	return w.nodes[i]
}
