package pages

import "strings"

// Commands returns the simple commands of a shell text, each as its words:
// lines with a backslash at their end are joined, comments and what redirects
// are left out. Pages write alternatives as a|b, so a | that ends or begins no
// word is no pipe here.
func Commands(text string) (all [][]string) {
	var words []string
	end := func() {
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		skip := false // the next word is a file
		for _, w := range shellWords(line) {
			switch {
			case w.quoted:
			case w.text == "&&" || w.text == "||" || w.text == "|" || w.text == ";" || w.text == "&":
				end()
				continue
			case w.text == ">" || w.text == ">>" || w.text == "<" || w.text == "2>":
				skip = true
				continue
			}
			if skip {
				skip = false
				continue
			}
			words = append(words, w.text)
		}
		end()
	}
	return all
}

type shellWord struct {
	text   string
	quoted bool
}

// shellWords splits a line at white space, minds quotes and stops at a comment.
func shellWords(line string) (words []shellWord) {
	var w strings.Builder
	var quote rune
	begun, quoted := false, false
	end := func() {
		if begun {
			words = append(words, shellWord{w.String(), quoted})
		}
		w.Reset()
		begun, quoted = false, false
	}
	for _, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				w.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, begun, quoted = r, true, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			end()
		case r == '#' && !begun:
			return words
		case r == ';':
			end()
			words = append(words, shellWord{";", false})
		default:
			begun = true
			w.WriteRune(r)
		}
	}
	end()
	return words
}
