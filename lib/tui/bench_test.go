package tui

import (
	"fmt"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smqpb"
)

func manyTopics(n int) *Model {
	m := newModel(Options{Backend: newFake(), Zone: time.UTC})
	u := world()
	u.Topics = worldTopics(n)
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 50})
	m.Update(updatesMsg{updates: []*smqpb.WatchUpdate{u}})
	for range historyLength {
		m.Update(tickMsg{})
	}
	m.View()
	return m
}

// BenchmarkView draws the list of topics: what it costs does not depend on how
// many there are, but on how many are in sight.
func BenchmarkView(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := manyTopics(n)
			b.ReportAllocs()
			for b.Loop() {
				m.View()
			}
		})
	}
}

// BenchmarkUpdate takes new loads of all topics and draws them, sorted anew.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := manyTopics(n)
			msg := updatesMsg{updates: []*smqpb.WatchUpdate{{Topics: worldTopics(n)}}}
			b.ReportAllocs()
			for b.Loop() {
				m.Update(msg)
				m.View()
			}
		})
	}
}

// BenchmarkTick takes the samples of a second.
func BenchmarkTick(b *testing.B) {
	m := manyTopics(10_000)
	b.ReportAllocs()
	for b.Loop() {
		m.Update(tickMsg{})
	}
}

// The list is sorted when what it is made of has changed, and only then.
func TestViewDoesNotSortAgain(t *testing.T) {
	m := manyTopics(1000)
	s := m.screen().(*topicsScreen)
	s.rows[0], s.rows[1] = s.rows[1], s.rows[0] // which sorting would undo
	first := s.rows[0]
	m.View()
	if s.rows[0] != first {
		t.Error("sorted though nothing has changed")
	}
	m.Update(updatesMsg{updates: []*smqpb.WatchUpdate{{Topics: worldTopics(1000)}}})
	m.View()
	if s.rows[0] == first {
		t.Error("not sorted though the loads have changed")
	}
}
