package admin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// damageTo is what the leading broker says of a file that is damaged.
func damageTo(file string) *smqpb.ErrorInfo {
	return rpc.ErrorInfo(fmt.Errorf("%s: it is %w", file, smq.ErrCorrupt))
}

// withDamage is a stub that lists three topics, the middle ones of which are
// damaged.
func withDamage(t *testing.T, damaged ...string) *stub {
	s := startStub(t)
	s.topics = append(s.topics, &smqpb.TopicSummary{Config: &smqpb.TopicConfig{Topic: "a", TopicId: "1", Partitions: 8}, Segments: 1})
	for _, name := range damaged {
		s.topics = append(s.topics, &smqpb.TopicSummary{Config: &smqpb.TopicConfig{Topic: name}, Error: damageTo("/topics/default/" + name + "/topic.json")})
	}
	s.topics = append(s.topics, &smqpb.TopicSummary{Config: &smqpb.TopicConfig{Topic: "z", TopicId: "9", Partitions: 8}, Segments: 1})
	return s
}

// wantLines checks that there are as many lines on standard error as texts, each
// with its text.
func wantLines(t *testing.T, what, stderr string, texts ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	if len(lines) != len(texts) {
		t.Errorf("%s: %d lines, want %d:\n%s", what, len(lines), len(texts), stderr)
		return
	}
	for i, text := range texts {
		if !strings.Contains(lines[i], text) {
			t.Errorf("%s: %q does not say %q", what, lines[i], text)
		}
	}
}

func TestTopicListWithADamagedOne(t *testing.T) {
	const file = "/topics/default/bad/topic.json: it is corrupt; restore the file"
	s := withDamage(t, "bad")
	for _, format := range []string{"table", "plain", "name"} {
		stdout, stderr, code := s.run(t, "topic", "list", "-o", format)
		if code != cli.ExitFailed || !strings.Contains(stdout, "a") || !strings.Contains(stdout, "z") || strings.Contains(stdout, "bad") {
			t.Errorf("%s: code %d\n%s", format, code, stdout)
		}
		wantLines(t, format, stderr, file)
	}
	stdout, stderr, code := s.run(t, "topic", "list", "-o", "json")
	var got []topicView
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != cli.ExitFailed || len(got) != 3 {
		t.Fatalf("code %d, %v, %s", code, err, stdout)
	}
	wantLines(t, "json", stderr, file)
	if got[0].Error != "" || got[1].Topic != "bad" || !strings.Contains(got[1].Error, "/topic.json") || got[2].Topic != "z" {
		t.Errorf("got %+v", got)
	}

	s = withDamage(t, "bad", "worse")
	_, stderr, code = s.run(t, "topic", "list")
	wantLines(t, "two", stderr, "/default/bad/topic.json", "/default/worse/topic.json", "2 topics cannot be read; restore the file")
	if code != cli.ExitFailed {
		t.Errorf("code %d", code)
	}
	if stdout, stderr, code = withDamage(t).run(t, "topic", "list", "-o", "json"); code != cli.ExitDone || stderr != "" || strings.Contains(stdout, "error") {
		t.Errorf("all are well: code %d, %s%s", code, stdout, stderr)
	}
}

func TestTopOnceWithADamagedTopic(t *testing.T) {
	const file = "/topics/default/bad/topic.json: it is corrupt"
	s := startStub(t)
	s.answerWatch(func(n int, send func(*smqpb.WatchUpdate)) error {
		send(&smqpb.WatchUpdate{
			Reset_: true, Complete: true, Cluster: &smqpb.ClusterInfo{LeadingMaster: "m:1"}, Detail: &smqpb.TopicDetail{Missing: true, Error: damageTo("/topics/default/bad/topic.json")},
			Topics: []*smqpb.TopicStatus{{Topic: "well", Partitions: 8}, {Topic: "bad", Error: damageTo("/topics/default/bad/topic.json")}},
		})
		return nil
	})
	for _, format := range []string{"table", "plain", "name"} {
		stdout, stderr, code := s.run(t, "top", "--once", "-o", format)
		if format != "table" && strings.TrimSpace(strings.Split(stdout, "\t")[0]) != "well" || !strings.Contains(stdout, "well") || strings.Contains(stdout, "bad") || code != cli.ExitFailed {
			t.Errorf("%s: code %d\n%s", format, code, stdout)
		}
		wantLines(t, format, stderr, file)
	}
	stdout, stderr, code := s.run(t, "top", "--once", "-o", "json")
	var got topView
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != cli.ExitFailed || len(got.Topics) != 2 || !strings.Contains(got.Topics[0].Error, file) || got.Topics[1].Error != "" {
		t.Errorf("code %d, %v, %s", code, err, stdout)
	}
	wantLines(t, "json", stderr, file)
	if stdout, stderr, code = s.run(t, "top", "--once", "bad"); code != cli.ExitFailed || stdout != "" {
		t.Errorf("code %d, %s", code, stdout)
	}
	wantLines(t, "the topic", stderr, file)
}

func TestTopicHistoryWithADamagedVersion(t *testing.T) {
	s := startStub(t)
	for v := range uint64(3) {
		s.versions = append(s.versions, &smqpb.Layout{Version: v + 1, Cause: "roll", Segments: []*smqpb.Segment{{Id: v + 1, Hi: 64}}})
	}
	s.spoiled = []*smqpb.DamagedVersion{{Version: 2, Error: damageTo("/layout/2.json")}}
	stdout, stderr, code := s.run(t, "topic", "history", "orders", "-o", "name")
	if stdout != "1\n3\n" || code != cli.ExitFailed {
		t.Errorf("code %d, %s", code, stdout)
	}
	wantLines(t, "name", stderr, "/layout/2.json: it is corrupt")
	stdout, _, code = s.run(t, "topic", "history", "orders", "-o", "json")
	var got []changeView
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != cli.ExitFailed || len(got) != 3 || got[1].Version != 2 || !strings.Contains(got[1].Error, "/layout/2.json") || got[2].Error != "" {
		t.Errorf("code %d, %v, %s", code, err, stdout)
	}
}

func TestDoctorNamesDamagedFiles(t *testing.T) {
	stdout, _, code := withDamage(t, "bad", "worse").run(t, "doctor", "-o", "json")
	var found []finding
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || code != cli.ExitUnhealthy {
		t.Fatalf("code %d, %v, %s", code, err, stdout)
	}
	found = slices.DeleteFunc(found, func(f finding) bool { return f.Check != "topics" })
	if len(found) != 2 || found[0].Status != bad || !strings.Contains(found[0].Detail, "/topics/default/bad/topic.json") || !strings.Contains(found[1].Detail, "worse") || found[0].Advice == "" {
		t.Errorf("found %+v", found)
	}
}
