// Package pages reads the Markdown pages of the repository for the tests that
// keep them true: their headings, links, blocks, tables, and the command lines
// in blocks.
package pages

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Page is a Markdown file.
type Page struct {
	Path string // from the root, with slashes
	Text string
}

// made are the top folders that programs fill.
var made = []string{"bin", "data", "runs"}

// All reads the pages of the repository at root, by path. Hidden folders and
// those that programs fill are left out.
func All(root string) (all []Page, err error) {
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains(made, rel)):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(rel) != ".md":
			return nil
		}
		text, err := os.ReadFile(file)
		all = append(all, Page{Path: rel, Text: string(text)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read pages: %w", err)
	}
	return all, nil
}

// line is a line outside of blocks, or the text of one.
type line struct {
	number int // from 1
	text   string
	block  *Block // that it begins or belongs to; nil outside
}

// Block is what stands between two fences.
type Block struct {
	Line     int    // of the opening fence
	Language string // behind it
	Text     string
}

func (p Page) lines() (all []line) {
	var open *Block
	number := 0
	for text := range strings.Lines(p.Text) {
		number++
		text = strings.TrimRight(text, "\r\n")
		fence, language := strings.CutPrefix(strings.TrimLeft(text, " "), "```")
		switch {
		case language && open == nil:
			open = &Block{Line: number, Language: strings.TrimSpace(fence)}
			all = append(all, line{number, "", open})
		case language:
			open = nil
		case open != nil:
			open.Text += text + "\n"
		default:
			all = append(all, line{number, text, nil})
		}
	}
	return all
}

// Blocks returns the fenced blocks.
func (p Page) Blocks() (all []Block) {
	for _, l := range p.lines() {
		if l.block != nil {
			all = append(all, *l.block)
		}
	}
	return all
}

// Code returns the `code` in the text outside of blocks, on one line each.
func (p Page) Code() (all []string) {
	var text strings.Builder
	for _, l := range p.lines() {
		text.WriteString(l.text + "\n")
	}
	for _, m := range codeForm.FindAllStringSubmatch(text.String(), -1) {
		all = append(all, strings.ReplaceAll(m[1], "\n", " "))
	}
	return all
}

// Link is a link or a picture.
type Link struct {
	Line         int
	Text, Target string
}

var linkForm = regexp.MustCompile(`\[([^\[\]]*)\]\(([^()\s]+)\)`)

// Links returns the links of a page outside of blocks and code.
func (p Page) Links() (all []Link) {
	for _, l := range p.lines() {
		for _, at := range linkForm.FindAllStringSubmatchIndex(l.text, -1) {
			if strings.Count(l.text[:at[0]], "`")%2 == 0 {
				all = append(all, Link{l.number, l.text[at[2]:at[3]], l.text[at[4]:at[5]]})
			}
		}
	}
	return all
}

var (
	headingForm = regexp.MustCompile(`^#{1,6} +(.*?)[ #]*$`)
	linkText    = regexp.MustCompile(`\[([^\[\]]*)\]\([^()]*\)`)
)

// Anchors returns what #... behind the page's name may be: its headings as
// GitHub writes them.
func (p Page) Anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, l := range p.lines() {
		m := headingForm.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		base := anchor(linkText.ReplaceAllString(m[1], "$1"))
		name := base
		for i := 1; anchors[name]; i++ {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		anchors[name] = true
	}
	return anchors
}

func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// Table is a table with a comment right above it, <!-- NOTE -->, that says what
// its first column must agree with.
type Table struct {
	Line  int
	Note  string
	Names []string // all `code` of the first column
}

var (
	noteForm = regexp.MustCompile(`^<!-- (.*) -->$`)
	codeForm = regexp.MustCompile("`([^`]+)`")
)

// Tables returns the tables with a note.
func (p Page) Tables() (all []Table) {
	var t *Table
	rows := 0
	for _, l := range p.lines() {
		if m := noteForm.FindStringSubmatch(l.text); m != nil {
			all = append(all, Table{Line: l.number, Note: m[1]})
			t, rows = &all[len(all)-1], 0
			continue
		}
		switch {
		case t == nil:
		case strings.HasPrefix(l.text, "|"):
			if rows++; rows > 2 { // head and rule
				cell, _, _ := strings.Cut(l.text[1:], "|")
				for _, m := range codeForm.FindAllStringSubmatch(cell, -1) {
					t.Names = append(t.Names, m[1])
				}
			}
		case rows > 0 || l.text != "":
			t = nil
		}
	}
	return all
}
