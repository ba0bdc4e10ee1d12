package suite

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// A task's parquet rows give the items that its JSON rows give.
func TestParquetRowsAreJSONRows(t *testing.T) {
	type labelled struct {
		Text  []string `parquet:"text,list"`
		Label []string `parquet:"label,list"`
	}
	type arc struct {
		Question  string   `parquet:"question"`
		Choices   labelled `parquet:"choices"`
		AnswerKey string   `parquet:"answerKey"`
	}
	type hella struct {
		Label   string   `parquet:"activity_label"`
		A       string   `parquet:"ctx_a"`
		B       string   `parquet:"ctx_b"`
		Endings []string `parquet:"endings,list"`
		Answer  string   `parquet:"label"`
	}
	type piqa struct {
		Goal  string `parquet:"goal"`
		One   string `parquet:"sol1"`
		Two   string `parquet:"sol2"`
		Label int64  `parquet:"label"`
	}
	for _, c := range []struct {
		task, json string
		raw        []byte
	}{
		{"arc_easy", `{"question":"Which floats?","choices":{"text":["cork","lead"],"label":["A","B"]},"answerKey":"A"}`,
			written(t, arc{"Which floats?", labelled{[]string{"cork", "lead"}, []string{"A", "B"}}, "A"})},
		{"hellaswag", `{"activity_label":"Cooking","ctx_a":"A pot boils.","ctx_b":"the cook","endings":["stirs it.","flies off."],"label":"0"}`,
			written(t, hella{"Cooking", "A pot boils.", "the cook", []string{"stirs it.", "flies off."}, "0"})},
		{"piqa", `{"goal":"Dry a cup","sol1":"Use a towel","sol2":"Use a fork","label":1}`,
			written(t, piqa{"Dry a cup", "Use a towel", "Use a fork", 1})},
	} {
		task, ok := FindTask(c.task)
		require.True(t, ok)
		want, err := task.Convert(strings.NewReader(c.json), "rows", nil)
		require.NoError(t, err)
		got, err := task.Convert(bytes.NewReader(c.raw), "rows", nil)
		require.NoError(t, err)
		require.Equal(t, want, got, c.task)
		for _, n := range []int{5, len(c.raw) / 2, len(c.raw) - 1} {
			_, err = task.Convert(bytes.NewReader(c.raw[:n]), "rows", nil)
			require.ErrorContains(t, err, "cut or damaged", "%s, %d bytes", c.task, n)
		}
	}
}

func written[T any](t *testing.T, rows ...T) []byte {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}
