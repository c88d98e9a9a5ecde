package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

var cancelTests = []testCase{
	{"CanceledBefore", testCanceledBefore},
	{"CanceledReads", testCanceledReads},
	{"CanceledDuring", testCanceledDuring},
}

// testCanceledBefore calls with a context that has ended: each call fails with
// its error, and unless it is ambiguous nothing has changed.
func testCanceledBefore(h *handles) {
	ctx := canceled(h.Context())
	h.create(h.a, "/d/kept", []byte("kept"))
	version := h.replace(h.a, "/d/small", "before", "")
	ref := h.upload(h.a, []byte("uploaded"))

	h.canceled("Create", h.a.Create(ctx, "/d/f", store.Bytes([]byte("x"))), func() {
		h.absent(h.b, "/d/f")
	})
	h.canceled("Create of a reference", h.a.Create(ctx, "/d/g", store.Refs(ref)), func() {
		h.absent(h.b, "/d/g")
		if err := h.b.Create(h.Context(), "/d/g", store.Refs(ref)); err != nil {
			h.Errorf("the reference was lost: %v", err)
		}
	})
	_, err := h.a.Replace(ctx, "/d/small", []byte("after"), version)
	h.canceled("Replace", err, func() { h.holds(h.b, "/d/small", []byte("before")) })
	h.canceled("Remove", h.a.Remove(ctx, "/d/kept"), func() { h.holds(h.b, "/d/kept", []byte("kept")) })
	h.canceled("RemoveAll", h.a.RemoveAll(ctx, "/d"), func() { h.holds(h.b, "/d/kept", []byte("kept")) })
	_, err = h.a.Upload(ctx, []byte("x"))
	h.canceled("Upload", err, func() {})
}

// canceled checks the error of a call whose context had ended; unchanged says
// how to see that it did nothing.
func (h *handles) canceled(what string, err error, unchanged func()) {
	h.Helper()
	if !errors.Is(err, context.Canceled) {
		h.Errorf("%s with a context that has ended: %v, want its error", what, err)
	}
	if !errors.Is(err, store.ErrAmbiguous) {
		unchanged()
	}
}

func testCanceledReads(h *handles) {
	ctx := canceled(h.Context())
	h.create(h.a, "/d/f", []byte("x"))
	_, _, readErr := h.b.Read(ctx, "/d/f")
	n, readAtErr := h.b.ReadAt(ctx, "/d/f", make([]byte, 1), 0)
	_, statErr := h.b.Stat(ctx, "/d/f")
	_, listErr := h.b.List(ctx, "/d", "", 0)
	for i, err := range []error{readErr, readAtErr, statErr, listErr} {
		if !errors.Is(err, context.Canceled) {
			h.Errorf("call %d with a context that has ended: %v, want its error", i, err)
		}
	}
	if n != 0 {
		h.Errorf("ReadAt returned %d bytes with an error", n)
	}
}

// testCanceledDuring ends contexts while calls are under way. Whatever they
// return is true: nil means there, a definite error means it never comes.
func testCanceledDuring(h *handles) {
	const p = "/c/%d"
	outcomes := make([]error, rounds)
	for round := range rounds {
		ctx, cancel := context.WithCancel(h.Context())
		together(2, func(i int) {
			if i == 0 {
				outcomes[round] = h.either(round).Create(ctx, fmt.Sprintf(p, round), store.Bytes(racerContent(round, round%racers)))
			} else {
				cancel()
			}
		})
	}
	for round, err := range outcomes {
		path, content := fmt.Sprintf(p, round), racerContent(round, round%racers)
		switch {
		case err == nil:
			h.holds(h.b, path, content)
		case !errors.Is(err, context.Canceled):
			h.Errorf("round %d: %v, want the context's error", round, err)
		case errors.Is(err, store.ErrAmbiguous):
			// A repeat settles it: whichever of the two came first, it is whole.
			if err := h.b.Create(h.Context(), path, store.Bytes(content)); err != nil && !errors.Is(err, smq.ErrExists) {
				h.Errorf("round %d: repeat: %v", round, err)
			}
			h.holds(h.b, path, content)
		default:
			h.absent(h.b, path)
		}
	}
}
