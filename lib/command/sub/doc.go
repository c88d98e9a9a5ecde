// Package sub is smq-sub, the end of a pipeline that subscribes.
//
// # Parts
//
// A place is where to start or to stop, as --from and --until say it; the plan
// of a topic is what that means for each of its partitions. A follower reads a
// topic by its plan and renders messages; the output joins the followers of
// several topics and flushes whenever nothing more comes for the moment.
//
// # End
//
// It ends by itself when all partitions have reached what --until says, or
// after -n messages; when a signal or a closed pipe ends it, with what was
// rendered written, as far as somebody reads it.
package sub
