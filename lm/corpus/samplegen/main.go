// Command samplegen writes the sample text of package corpus: scenes of a small
// harbour town, made of a grammar with a fixed seed. All of its words were
// written for this project.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strings"
)

// sampleBytes is the size to reach.
const sampleBytes = 96_000

// rules of the grammar: [name] stands for one of its lines. [a] and [b] are the
// two people of a scene, [it] is what the scene is about.
var rules = map[string][]string{
	"person": {"Mara", "Old Tobin", "Ines", "the baker", "the ferryman", "Captain Rook", "Little Anselm", "the widow Hale", "Pieter", "the clockmaker", "Sister Oda", "Jonas"},
	"thing":  {"the blue lantern", "a broken oar", "the brass key", "a sack of flour", "the letter from the north", "an empty jar", "the harbour bell", "a map without names", "the red coat", "a basket of plums"},
	"place":  {"the quay", "the market", "the lighthouse", "the mill", "the narrow stair", "the chapel yard", "the inn", "the rope walk", "the salt house", "the orchard above the town"},
	"time":   {"In the morning", "Before the tide turned", "At noon", "Late in the evening", "On the third day", "After the rain", "When the bell had rung", "In the first week of winter", "That night"},
	"sky":    {"the fog lay low over the water", "the wind came from the west", "the sun stood white above the roofs", "it rained without haste", "the gulls were loud", "the sea was as flat as a table", "snow fell on the boats", "the air smelled of tar and bread"},
	"went":   {"walked to", "came slowly from", "waited near", "ran past", "sat down by", "stood for an hour at", "turned back before"},
	"did":    {"looked at", "picked up", "asked about", "had forgotten", "wrapped a cloth round", "wanted to sell", "would not let go of", "put down"},
	"mood":   {"quiet", "glad", "tired", "uneasy", "a little proud", "too curious to leave", "angry for no reason", "as patient as a stone"},
	"reason": {"because the boats were late", "for there was nothing else to do", "though nobody had asked", "since winter was near", "and did not say why", "as people in this town do", "because a promise is a promise"},
	"story": {
		"[time] [sky], and [a] [went] [place].",
		"[time] [a] [went] [place] [reason].",
		"[a] [did] [it], [reason].",
		"[b] was [mood], and [a] was [mood].",
		"Nobody at [place] had seen [it] since the spring.",
		"There were [number] boats in the harbour, and [number] of them leaked.",
		"[b] [went] [place] and [did] [it].",
		"\"[speech],\" said [b].",
		"[a] counted to [number] and began again.",
		"From [place] to [place] it is [number] steps, if one does not stop to talk.",
		"[sky], so [b] stayed at [place].",
		"It was said that [it] had once belonged to [person].",
	},
	"number": {"two", "three", "four", "seven", "eleven", "twelve", "twenty", "thirty-one", "forty", "a hundred"},
	"speech": {
		"Have you seen [it]", "I left [it] at [place]", "It is not mine, and it is not yours", "Give it back before the tide turns", "The wind will change by tomorrow",
		"I have [number] reasons, and you would like none of them", "We could ask [person]", "You are [mood] today", "Nobody pays for [it]", "Then we shall wait",
		"My father carried [it] from [place] to [place]", "Sit down; the soup is hot", "That is what [person] told me", "I will think about it [reason]", "Tell me again, and more slowly",
	},
	"line":  {"[speech].", "[speech].", "[speech]!", "[speech]?", "No. [speech].", "Yes, [b2]. [speech].", "Well, well. [speech], and that is all."},
	"aside": {"(looks at [it])", "(laughs)", "(after a while)", "(from the door)", "(quietly)", "(counting coins)"},
	"goods": {"flour", "candles", "rope, thin", "rope, thick", "salt", "plums", "nails", "lamp oil", "wool", "smoked fish", "ink", "honey"},
	"unit":  {"sacks", "boxes", "coils", "jars", "pounds", "barrels", "baskets"},
	"step":  {"Wash [it] in cold water.", "Carry it to [place] before noon.", "Wait until [sky2].", "Count to [number].", "Ask [person] for the second half.", "Tie it with thick rope, never with thin.", "Write down what you owe.", "Do not look back at [place]."},
	"sky2":  {"the fog is gone", "the bell has rung twice", "the tide is out", "the bread is done", "the gulls are silent"},
	"verse": {"The [adj] boat goes out at [hour],", "The [adj] boat comes home at [hour],", "And who will ring the [adj] bell,", "And who will light the [adj] lamp,", "The sea is wide, the night is [adj],", "The net is torn, the rope is [adj],", "So count your coins and close the door,", "So bring the plums and pour the wine,"},
	"adj":   {"old", "small", "grey", "long", "blue", "slow", "deep"},
	"hour":  {"one", "four", "six", "nine", "dawn", "dusk"},
}

// scene holds what stays the same within one.
type scene struct {
	r     *rand.Rand
	fixed map[string]string
}

func (s scene) pick(name string) string {
	if v, ok := s.fixed[name]; ok {
		return v
	}
	lines, ok := rules[name]
	if !ok {
		log.Fatalf("samplegen: there is no rule %q", name)
	}
	return s.expand(lines[s.r.IntN(len(lines))])
}

func (s scene) expand(text string) string {
	for {
		from := strings.IndexByte(text, '[')
		if from < 0 {
			return text
		}
		to := from + strings.IndexByte(text[from:], ']')
		text = text[:from] + s.pick(text[from+1:to]) + text[to+1:]
	}
}

// sentence begins with a capital letter.
func (s scene) sentence(name string) string { return capital(s.pick(name)) }

func capital(text string) string {
	at := 0
	if strings.HasPrefix(text, "\"") || strings.HasPrefix(text, "(") {
		at = 1
	}
	return text[:at] + strings.ToUpper(text[at:at+1]) + text[at+1:]
}

func (s scene) write(b *strings.Builder, number int) {
	title := capital(s.fixed["it"])
	switch s.r.IntN(6) {
	case 0, 1: // a story
		fmt.Fprintf(b, "%d. %s\n\n", number, title)
		for range 2 + s.r.IntN(3) {
			var sentences []string
			for range 3 + s.r.IntN(4) {
				sentences = append(sentences, s.sentence("story"))
			}
			b.WriteString(strings.Join(sentences, " ") + "\n\n")
		}
	case 2, 3: // a dialogue
		fmt.Fprintf(b, "%d. A talk at %s\n\n", number, s.fixed["at"])
		for i := range 6 + s.r.IntN(8) {
			who, other := s.fixed["a"], s.fixed["b"]
			if i%2 == 1 {
				who, other = other, who
			}
			s.fixed["b2"] = other
			aside := ""
			if s.r.IntN(4) == 0 {
				aside = " " + s.pick("aside")
			}
			fmt.Fprintf(b, "%s:%s\n%s\n\n", strings.ToUpper(who), aside, s.sentence("line"))
		}
	case 4: // a list
		if s.r.IntN(2) == 0 {
			fmt.Fprintf(b, "%d. Bought at %s\n\n", number, s.fixed["at"])
			total := 0
			for range 4 + s.r.IntN(5) {
				count, price := 1+s.r.IntN(20), 1+s.r.IntN(9)
				total += count * price
				fmt.Fprintf(b, "- %s: %d %s at %d = %d\n", s.pick("goods"), count, s.pick("unit"), price, count*price)
			}
			fmt.Fprintf(b, "Sum: %d\n\n", total)
			return
		}
		fmt.Fprintf(b, "%d. What to do with %s\n\n", number, s.fixed["it"])
		for i := range 3 + s.r.IntN(4) {
			fmt.Fprintf(b, "%c) %s\n", 'a'+rune(i), s.sentence("step"))
		}
		b.WriteString("\n")
	default: // a song
		fmt.Fprintf(b, "%d. A song about %s\n\n", number, s.fixed["it"])
		for range 2 + s.r.IntN(2) {
			for range 3 {
				b.WriteString(s.pick("verse") + "\n")
			}
			b.WriteString("And nobody knows but the tide.\n\n")
		}
	}
}

func main() {
	out := flag.String("out", "sample.txt", "file to write")
	flag.Parse()
	r := rand.New(rand.NewPCG(20261130, 1))
	var b strings.Builder
	for number := 1; b.Len() < sampleBytes; number++ {
		people := r.Perm(len(rules["person"]))
		s := scene{r, map[string]string{"a": rules["person"][people[0]], "b": rules["person"][people[1]]}}
		s.fixed["it"], s.fixed["at"] = s.pick("thing"), s.pick("place")
		s.write(&b, number)
	}
	if err := os.WriteFile(*out, []byte(strings.TrimSpace(b.String())+"\n"), 0o644); err != nil {
		log.Fatal(err)
	}
}
