package admin

import "fmt"

// ackWords says in words what an ack means in the topic as it is now, for publishers
// that ask for nothing else.
func ackWords(segments []layoutSegmentView) string {
	assigned, replicated, least := 0, 0, 0
	for _, s := range segments {
		if s.Owner == "" {
			continue
		}
		assigned++
		if n := len(s.Followers) + 1; n > 1 {
			if replicated == 0 || n < least {
				least = n
			}
			replicated++
		}
	}
	const stored = "the message is in the store"
	held := fmt.Sprintf("%d brokers hold the message, and the store soon after", least)
	switch {
	case assigned == 0:
		return "not known before a segment has an owner"
	case replicated == 0:
		return "stored: " + stored
	case replicated == assigned:
		return "replicated: " + held + "; with --acks stored: " + stored
	}
	return fmt.Sprintf("replicated in %d of %d segments: %s; in the others stored: %s", replicated, assigned, held, stored)
}
