package leader_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// spoil cuts a file short; mend puts it back.
func (b *bed) spoil(path string) (mend func()) {
	b.t.Helper()
	whole, _, err := b.st.Read(b.t.Context(), path)
	if err != nil {
		b.t.Fatal(err)
	}
	put := func(data []byte) {
		_, v, err := b.st.Read(b.t.Context(), path)
		if err == nil {
			_, err = b.st.Replace(b.t.Context(), path, data, v)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	put(whole[:len(whole)/2])
	return func() { put(whole) }
}

func configFile(c catalog.Config) string {
	return fmt.Sprintf("/topics/%s/%s/topic.json", c.Topic.Namespace, c.Topic.Name)
}

func versionFile(c catalog.Config, v uint64) string {
	return fmt.Sprintf("/topics/%s/%s/%s/layout/%020d.json", c.Topic.Namespace, c.Topic.Name, c.ID, v)
}

// wellAndBad makes three topics that broker a owns, and damages the middle one:
// the file that damaged names.
func (b *bed) wellAndBad(damaged func(catalog.Config) string) (bad catalog.Config, file string, mend func()) {
	b.t.Helper()
	for _, name := range []string{"b", "c"} {
		b.drain(name)
	}
	for _, name := range []string{"n1/well", "n2/bad", "n3/well"} {
		c := b.create(name, 8)
		b.publish(name, 1, "one")
		if c.Topic.Name == "bad" {
			bad = c
		}
	}
	for _, name := range []string{"b", "c"} {
		b.at(name).draining = false
	}
	b.leader.SetBrokers(b.brokers())
	file = damaged(bad)
	return bad, file, b.spoil(file)
}

// damages are the files that can be damaged so that a topic does not load.
var damages = map[string]func(catalog.Config) string{
	"configuration":  configFile,
	"newest version": func(c catalog.Config) string { return versionFile(c, 2) },
}

// A new leader takes over all topics but the one that is damaged, and that one
// when it is mended.
func TestADamagedTopicKeepsNoOtherFromItsLeader(t *testing.T) {
	for name, damaged := range damages {
		t.Run(name, func(t *testing.T) {
			bubble(t, []string{"a", "b", "c"}, func(b *bed) {
				bad, file, mend := b.wellAndBad(damaged)
				b.kill("a")
				begin := time.Now()
				b.lead(b.st.Handle())
				synctest.Wait()
				owner := func(name string) string {
					resp, err := b.leader.DescribeTopic(b.t.Context(), &smqpb.DescribeTopicRequest{Topic: name})
					if err != nil {
						return err.Error()
					}
					return resp.GetLayout().GetSegments()[0].GetOwnerAddress()
				}
				for _, well := range []string{"n1/well", "n3/well"} {
					if got := owner(well); got != "b:7310" && got != "c:7310" {
						b.t.Errorf("%s is left to %s", well, got)
					}
				}
				if got := owner("n2/bad"); !strings.Contains(got, file) {
					b.t.Errorf("the damaged topic: %s, want the name of %s", got, file)
				}
				if waited := time.Since(begin); waited > time.Second {
					b.t.Errorf("after %v", waited)
				}
				mend()
				<-time.After(15 * time.Second)
				if got := owner("n2/bad"); got != "b:7310" && got != "c:7310" {
					b.t.Errorf("mended, it is left to %s", got)
				}
				b.wantCauses(bad, layout.Failover)
			})
		})
	}
}

// A list of topics has all of them, and says of the damaged one what is wrong.
func TestListTopicsWithADamagedOne(t *testing.T) {
	for name, damaged := range damages {
		t.Run(name, func(t *testing.T) {
			bubble(t, []string{"a", "b", "c"}, func(b *bed) {
				_, file, mend := b.wellAndBad(damaged)
				b.lead(b.st.Handle())
				for _, namesOnly := range []bool{false, true} {
					for _, limit := range []int32{0, 1, 2} {
						if got := fmt.Sprint(b.list("", limit, namesOnly)); got != "[n1/well n2/bad n3/well]" {
							b.t.Errorf("pages of %d: %s", limit, got)
						}
					}
					resp, err := b.leader.ListTopics(b.t.Context(), &smqpb.ListTopicsRequest{NamesOnly: namesOnly})
					if err != nil {
						b.t.Fatal(err)
					}
					for i, s := range resp.GetTopics() {
						err := rpc.FromErrorInfo(s.GetError())
						if bad := i == 1 && !(namesOnly && name == "newest version"); bad != errors.Is(err, smq.ErrCorrupt) || bad && !strings.Contains(err.Error(), file) {
							b.t.Errorf("names only %v, %s: %v", namesOnly, s.GetConfig().GetTopic(), err)
						}
						if known := s.GetConfig().GetPartitions() == 8; known != (i != 1 || name == "newest version") {
							b.t.Errorf("got %v", s)
						}
					}
				}
				mend()
				resp, err := b.leader.ListTopics(b.t.Context(), &smqpb.ListTopicsRequest{})
				if err != nil || resp.GetTopics()[1].GetError() != nil || resp.GetTopics()[1].GetSegments() != 1 {
					b.t.Errorf("mended: %v, %v", resp, err)
				}
			})
		})
	}
}

// Watchers see the damaged topic, are not kept waiting by it, and see when it is
// mended or gone.
func TestWatchADamagedTopic(t *testing.T) {
	for _, gone := range []bool{false, true} {
		bubble(t, []string{"a", "b", "c"}, func(b *bed) {
			bad, file, mend := b.wellAndBad(configFile)
			b.lead(b.st.Handle())
			synctest.Wait()
			begin := time.Now()
			all, detail := b.watch(&smqpb.WatchRequest{Topics: true}), b.watch(&smqpb.WatchRequest{Topic: "n2/bad"})
			other := b.watch(&smqpb.WatchRequest{Topics: true, Namespace: "n1"})
			defer all.stop()
			defer detail.stop()
			defer other.stop()
			told := map[string]*smqpb.TopicStatus{}
			for _, u := range all.snapshot(b.t) {
				for _, s := range u.GetTopics() {
					told[s.GetTopic()] = s
				}
			}
			if len(told) != 3 || !strings.Contains(told["n2/bad"].GetError().GetMessage(), file) || told["n1/well"].GetError() != nil {
				b.t.Errorf("got %v", told)
			}
			if d := detail.snapshot(b.t)[0].GetDetail(); !d.GetMissing() || !strings.Contains(d.GetError().GetMessage(), file) {
				b.t.Errorf("got %v", d)
			}
			if u := other.snapshot(b.t)[0]; len(u.GetTopics()) != 1 {
				b.t.Errorf("of another namespace: %v", u)
			}
			if waited := time.Since(begin); waited > time.Second {
				b.t.Errorf("it took %v", waited)
			}
			all.quiet(b.t)
			detail.quiet(b.t)
			if gone {
				if err := b.st.RemoveAll(b.t.Context(), strings.TrimSuffix(configFile(bad), "/topic.json")); err != nil {
					b.t.Fatal(err)
				}
				if u := all.next(b.t); len(u.GetRemovedTopics()) != 1 || u.GetRemovedTopics()[0] != "n2/bad" {
					b.t.Errorf("got %v", u)
				}
				if d := detail.next(b.t).GetDetail(); !d.GetMissing() || d.GetError() != nil {
					b.t.Errorf("got %v", d)
				}
			} else {
				mend()
				if u := all.next(b.t); len(u.GetTopics()) != 1 || u.GetTopics()[0].GetError() != nil || u.GetTopics()[0].GetSegments() != 1 {
					b.t.Errorf("got %v", u)
				}
				if d := detail.next(b.t).GetDetail(); d.GetMissing() || d.GetConfig().GetTopicId() != string(bad.ID) {
					b.t.Errorf("got %v", d)
				}
			}
			all.quiet(b.t)
			other.quiet(b.t)
		})
	}
}

// What is known of a topic serves on when its file is damaged later.
func TestATopicThatIsDamagedWhileItIsKnown(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		bad, file, mend := b.wellAndBad(configFile)
		b.publish("n2/bad", 1, "two")
		_, err := b.leader.AlterTopic(b.t.Context(), &smqpb.AlterTopicRequest{Topic: "n2/bad", Replicas: 2})
		if !errors.Is(err, smq.ErrCorrupt) || !strings.Contains(err.Error(), file) {
			b.t.Errorf("alter: %v", err)
		}
		b.kill("a")
		b.publish("n2/bad", 1, "three")
		mend()
		b.check("n2/bad")
		b.wantCauses(bad, layout.Failover)
	})
}

// A damaged version in a topic's past leaves the topic as it is, and its other
// versions are told.
func TestListVersionsWithADamagedOne(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c, _, _ := b.divided() // create, assign, split
		b.spoil(versionFile(c, 2))
		b.lead(b.st.Handle())
		resp, err := b.leader.ListVersions(b.t.Context(), &smqpb.ListVersionsRequest{Topic: "t"})
		if err != nil || len(resp.GetVersions()) != 2 || resp.GetVersions()[1].GetVersion() != 3 || resp.GetMore() {
			b.t.Fatalf("%v, %v", resp, err)
		}
		if d := resp.GetDamaged(); len(d) != 1 || d[0].GetVersion() != 2 || !strings.Contains(d[0].GetError().GetMessage(), versionFile(c, 2)) {
			b.t.Errorf("damaged: %v", d)
		}
		b.publish("t", 1, "two")
	})
}

// A topic that the leader knows goes on when its configuration is damaged, and the
// next sweep notices: nobody could take the topic over after this leader.
func TestDamageOfAKnownTopicIsNoticed(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		_, file, mend := b.wellAndBad(configFile)
		said := func() string {
			resp, err := b.leader.ListTopics(b.t.Context(), &smqpb.ListTopicsRequest{})
			if err != nil || len(resp.GetTopics()) != 3 {
				b.t.Fatalf("%v, %v", resp, err)
			}
			return resp.GetTopics()[1].GetError().GetMessage()
		}
		<-time.After(11 * time.Minute)
		if text := said(); !strings.Contains(text, file) {
			b.t.Errorf("after a sweep: %q", text)
		}
		b.publish("n2/bad", 1, "two")
		mend()
		<-time.After(15 * time.Second)
		if text := said(); text != "" {
			b.t.Errorf("mended: %q", text)
		}
	})
}
