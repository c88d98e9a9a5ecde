package smq

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// DefaultNamespace is the namespace of a topic that is named without one.
const DefaultNamespace = "default"

// MaxNameLength is the longest name of a topic or of a namespace, in bytes,
// as in Kafka.
const MaxNameLength = 249

// Topic names a topic: a namespace and a name within it.
type Topic struct {
	Namespace string
	Name      string
}

// ParseTopic reads "name" (in the default namespace) or "namespace/name".
// The error is an ErrInvalid that says what is wrong.
func ParseTopic(s string) (Topic, error) {
	namespace, name, found := strings.Cut(s, "/")
	if !found {
		namespace, name = DefaultNamespace, s
	}
	if err := checkName("namespace", namespace); err != nil {
		return Topic{}, fmt.Errorf("topic %q: %w", s, err)
	}
	if err := checkName("topic name", name); err != nil {
		return Topic{}, fmt.Errorf("topic %q: %w", s, err)
	}
	return Topic{Namespace: namespace, Name: name}, nil
}

// String is the form that ParseTopic reads back, without the default namespace.
func (t Topic) String() string {
	if t.Namespace == DefaultNamespace || t.Namespace == "" {
		return t.Name
	}
	return t.Namespace + "/" + t.Name
}

// IsZero reports whether t names nothing.
func (t Topic) IsZero() bool { return t == Topic{} }

func checkName(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w %s: it is empty", ErrInvalid, what)
	case len(s) > MaxNameLength:
		return fmt.Errorf("%w %s: %d bytes long, the limit is %d", ErrInvalid, what, len(s), MaxNameLength)
	case s[0] == '.':
		return fmt.Errorf("%w %s: %q begins with a dot", ErrInvalid, what, s)
	}
	for _, c := range s {
		if !isNameChar(c) {
			return fmt.Errorf("%w %s: %q is not allowed, use letters, digits, '.', '_' and '-'", ErrInvalid, what, c)
		}
	}
	return nil
}

func isNameChar(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// TopicID tells a topic from an earlier one of the same name: 16 random bytes
// in lower-case hexadecimal, drawn when the topic is created.
type TopicID string

// NewTopicID draws a fresh id.
func NewTopicID() TopicID { return TopicID(randomHex(16)) }

// Valid reports whether id has the form of a topic id, so that it is safe as a
// part of a path.
func (id TopicID) Valid() bool { return isHex(string(id), 16) }

// BrokerID names one run of a broker process: 8 random bytes in lower-case
// hexadecimal, fresh at every start and never used again once its lease has
// run out.
type BrokerID string

// NewBrokerID draws a fresh id.
func NewBrokerID() BrokerID { return BrokerID(randomHex(8)) }

// ClusterID names a cluster, for its whole life: 16 random bytes in
// lower-case hexadecimal.
type ClusterID string

// NewClusterID draws a fresh id.
func NewClusterID() ClusterID { return ClusterID(randomHex(16)) }

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}

func isHex(s string, n int) bool {
	if len(s) != 2*n {
		return false
	}
	for _, c := range s {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}
