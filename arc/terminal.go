package arc

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// TextOptions say how WriteText draws.
type TextOptions struct {
	// Color draws cells as blocks of 24-bit colour; else they are digits.
	Color bool
	// Width is the number of columns to use; 0 means 80. A pair that is wider
	// is drawn all the same.
	Width int
}

// WriteText draws a task for a terminal: input and output of a pair side by
// side, and as many pairs in a line as fit. A cell is two columns wide. An
// unknown output is a question mark.
func WriteText(w io.Writer, t *Task, opt TextOptions) error { return WriteSheetText(w, t.sheet(), opt) }

// WriteSheetText is WriteText of a sheet; each part begins a line.
func WriteSheetText(w io.Writer, s *Sheet, opt TextOptions) error {
	if opt.Width <= 0 {
		opt.Width = 80
	}
	var b strings.Builder
	b.WriteString(printed(s.Title) + "\n")
	for _, part := range s.Parts {
		blocks := make([]block, len(part))
		for i, c := range part {
			blocks[i] = pairBlock(c.Label, c.Pair, opt.Color)
		}
		writeBlocks(&b, blocks, opt.Width)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Title is the task's id with its split, fit to print: a name from a file may
// hold anything.
func (t *Task) Title() string {
	title := t.ID
	if t.Split != "" {
		title += " (" + t.Split + ")"
	}
	return printed(title)
}

func printed(title string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, title)
}

// block is text of a known width; lines may hold escape codes.
type block struct {
	lines []string
	width int
}

// beside puts blocks next to each other with gap columns between, all as high
// as the highest.
func beside(gap int, blocks ...block) block {
	height, width := 0, gap*(len(blocks)-1)
	for _, b := range blocks {
		height = max(height, len(b.lines))
		width += b.width
	}
	out := block{lines: make([]string, height), width: width}
	for i := range out.lines {
		var line strings.Builder
		for k, b := range blocks {
			if k > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			if i < len(b.lines) {
				line.WriteString(b.lines[i])
			} else {
				line.WriteString(strings.Repeat(" ", b.width))
			}
		}
		out.lines[i] = line.String()
	}
	return out
}

// gridBlock draws one grid, or a question mark for none.
func gridBlock(g Grid, inColor bool) block {
	if g.Empty() {
		return block{lines: []string{"? "}, width: 2}
	}
	b := block{width: 2 * g.Cols}
	for r := range g.Rows {
		var line strings.Builder
		last := -1
		for c := range g.Cols {
			v := g.At(r, c)
			if !inColor {
				line.WriteByte('0' + v)
				line.WriteByte(' ')
				continue
			}
			if int(v) != last {
				p := Palette[v]
				fmt.Fprintf(&line, "\x1b[48;2;%d;%d;%dm", p.R, p.G, p.B)
				last = int(v)
			}
			line.WriteString("  ")
		}
		if inColor {
			line.WriteString("\x1b[0m")
		}
		b.lines = append(b.lines, line.String())
	}
	return b
}

// pairBlock draws a pair under its label.
func pairBlock(label string, p Pair, inColor bool) block {
	out := "?"
	if p.Labelled() {
		out = fmt.Sprintf("%dx%d", p.Output.Rows, p.Output.Cols)
	}
	head := fmt.Sprintf("%s %dx%d > %s", label, p.Input.Rows, p.Input.Cols, out)
	arrow := block{width: 2}
	for range (max(p.Input.Rows, p.Output.Rows) - 1) / 2 {
		arrow.lines = append(arrow.lines, "  ")
	}
	arrow.lines = append(arrow.lines, "> ")
	body := beside(1, gridBlock(p.Input, inColor), arrow, gridBlock(p.Output, inColor))
	width := max(body.width, len(head))
	for i := range body.lines {
		body.lines[i] += strings.Repeat(" ", width-body.width)
	}
	return block{lines: append([]string{head + strings.Repeat(" ", width-len(head))}, body.lines...), width: width}
}

// writeBlocks puts as many blocks into a line as fit the width.
func writeBlocks(b *strings.Builder, blocks []block, width int) {
	const gap = 4
	for len(blocks) > 0 {
		n, used := 1, blocks[0].width
		for n < len(blocks) && used+gap+blocks[n].width <= width {
			used += gap + blocks[n].width
			n++
		}
		for _, line := range beside(gap, blocks[:n]...).lines {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		b.WriteString("\n")
		blocks = blocks[n:]
	}
}
