package arc

import (
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"strings"
)

// WriteSVG writes the same picture as WritePNG, as SVG.
func WriteSVG(w io.Writer, tasks ...*Task) error {
	f := newFigure(sheets(tasks))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" shape-rendering="crispEdges">`+"\n", f.width, f.height)
	rect := func(x box) {
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", x.x, x.y, x.w, x.h, hexColor(x.fill))
	}
	rect(box{0, 0, f.width, f.height, paper})
	for _, x := range f.boxes {
		rect(x)
	}
	fmt.Fprintf(&b, `<g font-family="monospace" font-size="12" fill="%s">`+"\n", hexColor(ink))
	for _, l := range f.labels {
		fmt.Fprintf(&b, `<text x="%d" y="%d">`, l.x, l.y+11)
		if err := xml.EscapeText(&b, []byte(l.text)); err != nil {
			return err
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</g>\n</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func hexColor(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }
