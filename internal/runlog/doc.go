// Package runlog records a run: metrics.jsonl, which holds nothing but what
// the run computed, so that an interrupted and resumed run leaves the same
// file as an uninterrupted one; sessions.jsonl, which holds times, speeds and
// interruptions; and progress for a person. One exception: a session that a
// time limit ended (--minutes) adds the line of the evaluation at the step
// where it stopped.
package runlog
