package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Serve answers requests from in on out until in ends: the other end of a
// Process.
func Serve(in io.Reader, out io.Writer, hello Reply, answer func(Request) (Reply, error)) error {
	write := json.NewEncoder(out)
	if err := write.Encode(hello); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r Request
		err := json.Unmarshal(lines.Bytes(), &r)
		var reply Reply
		if err == nil {
			reply, err = answer(r)
		}
		if err != nil {
			reply = Reply{Error: fmt.Sprint(err)}
		}
		if err := write.Encode(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}
