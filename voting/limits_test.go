package voting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/voting"
)

// Tokens that no model of 12 tokens can answer are damage, not an end of the
// grid.
func TestTokensOutsideTheVocabulary(t *testing.T) {
	tasks := []arc.Task{task("a", "1>2")}
	for _, bad := range []uint8{12, 255} {
		b := rows(tasks, []vote{{0, 0, "2", 0}, {0, 0, "3", 0}}, false)
		b.Preds[side*side+5] = bad
		err := voting.NewCounter(tasks, plain(1), side, 1).Add(b)
		require.ErrorContains(t, err, "row 1: token 5 of its answer is ")
		require.ErrorContains(t, err, "expected 0 to 11")
		require.True(t, err.(*voting.Error).BadInput())
		b.Identifiers[1] = 0 // of a pad row nothing counts
		require.NoError(t, voting.NewCounter(tasks, plain(1), side, 1).Add(b))
	}
	b := rows(tasks, []vote{{0, 0, "2", 0}}, false)
	b.Preds[side*side-1] = 11
	require.NoError(t, voting.NewCounter(tasks, plain(1), side, 1).Add(b))
}

// Who holds only the right outputs can compare them with who holds the tasks.
func TestHashesOfTruthWithAndWithoutInputs(t *testing.T) {
	whole := []arc.Task{task("a", "1>11", "2>22"), task("b", "3>33")}
	outputs := []arc.Task{task("b", ">33"), task("a", ">11", ">22")}
	require.Len(t, voting.HashTruth(whole), 64)
	require.Empty(t, voting.HashTruth(outputs))
	require.Equal(t, voting.HashOutputs(whole), voting.HashOutputs(outputs))
	require.NotEqual(t, voting.HashTruth(whole), voting.HashOutputs(whole))
	outputs[1].Test[1].Output.Set(0, 0, 5)
	require.NotEqual(t, voting.HashOutputs(whole), voting.HashOutputs(outputs))
}

func TestAttemptsBeyondTheSecond(t *testing.T) {
	s, err := voting.ParseSubmission([]byte(`{"a": [{"attempt_1": [[1]], "attempt_2": [[2]], "attempt_3": []}, {"attempt_4": [[3]], "attempt_3": [[3]]}]}`))
	require.NoError(t, err)
	require.Equal(t, []string{"a test[1].attempt_3", "a test[1].attempt_4"}, s.Beyond())
}

func TestSolutionsWithBadNames(t *testing.T) {
	_, err := voting.ParseSolutions([]byte(`{"a\u001b[2J": [[[1]]]}`))
	require.ErrorContains(t, err, `task "a\x1b[2J": has the control character U+001B`)
}
