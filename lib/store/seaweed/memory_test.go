package seaweed

import (
	"fmt"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	now := time.Unix(1000, 0)
	m := newMemory[string, int](10, time.Minute)
	m.now = func() time.Time { return now }
	has := func(keys ...string) {
		t.Helper()
		for i, key := range keys {
			if v, ok := m.get(key); !ok || v != i {
				t.Errorf("%s is %d, %v, want %d", key, v, ok, i)
			}
		}
	}
	lacks := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			if v, ok := m.get(key); ok {
				t.Errorf("%s is still %d", key, v)
			}
		}
	}
	m.put("a", 7, 3)
	m.put("a", 0, 3) // in the place of the first
	m.put("b", 1, 4)
	m.put("c", 2, 3)
	has("a", "b", "c")

	m.get("a")
	m.put("d", 0, 1) // b was used least recently
	lacks("b")
	m.put("huge", 0, 11)
	lacks("huge")
	if _, ok := m.get("c"); !ok {
		t.Error("something too large drove others out")
	}
	m.remove("c")
	m.remove("none")
	m.forget(func(key string) bool { return key == "d" })
	lacks("c", "d")
	has("a")

	now = now.Add(time.Minute + 1)
	lacks("a")
	if m.cost != 0 || m.order.Len() != 0 || len(m.items) != 0 {
		t.Errorf("nothing is left, but it costs %d", m.cost)
	}
	for i := range 1000 {
		m.put(fmt.Sprint(i), i, 1+i%3)
	}
	if m.cost > 10 || m.order.Len() != len(m.items) {
		t.Errorf("%d items cost %d", len(m.items), m.cost)
	}
}

func TestForgetBelow(t *testing.T) {
	s := &Store{files: newMemory[string, file](100, time.Hour), folders: newMemory[string, struct{}](100, time.Hour)}
	paths := []string{"/a", "/a/b", "/a/b/c", "/ab", "/b/a"}
	for _, p := range paths {
		s.files.put(p, file{}, 1)
		s.folders.put(p, struct{}{}, 1)
	}
	s.forgetBelow("/a")
	for i, p := range paths {
		_, known := s.files.get(p)
		_, seen := s.folders.get(p)
		if want := i >= 3; known != want || seen != want {
			t.Errorf("%s is remembered: %v, %v", p, known, seen)
		}
	}
}
