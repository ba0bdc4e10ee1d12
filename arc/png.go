package arc

import (
	"image"
	"image/color"
	"image/png"
	"io"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// Image draws the tasks below each other, one column per pair, the output
// under its input.
func Image(tasks ...*Task) image.Image { return sheetImage(newFigure(sheets(tasks))) }

func sheetImage(f *figure) image.Image {
	img := image.NewPaletted(image.Rect(0, 0, f.width, f.height), imagePalette())
	fillBox(img, box{0, 0, f.width, f.height, paper})
	for _, b := range f.boxes {
		fillBox(img, b)
	}
	face := basicfont.Face7x13
	for _, l := range f.labels {
		d := font.Drawer{Dst: img, Src: image.NewUniform(ink), Face: face, Dot: fixed.P(l.x, l.y+face.Ascent)}
		d.DrawString(l.text)
	}
	return img
}

// imagePalette holds every colour a figure uses; 16 colours keep files small.
func imagePalette() color.Palette {
	p := color.Palette{paper, ink, gutter}
	for _, c := range Palette {
		p = append(p, c)
	}
	return p
}

func fillBox(img *image.Paletted, b box) {
	index := uint8(img.Palette.Index(b.fill))
	r := image.Rect(b.x, b.y, b.x+b.w, b.y+b.h).Intersect(img.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := img.Pix[img.PixOffset(r.Min.X, y):][:r.Dx()]
		for i := range row {
			row[i] = index
		}
	}
}

// maxPixels bounds a PNG, which is drawn in memory at one byte a pixel.
const maxPixels = 64 << 20

// WritePNG writes Image as PNG. Too many tasks for one picture is an *Error.
func WritePNG(w io.Writer, tasks ...*Task) error { return WriteSheetsPNG(w, sheets(tasks)...) }

// WriteSheetsPNG is WritePNG of sheets.
func WriteSheetsPNG(w io.Writer, sheets ...*Sheet) error {
	f := newFigure(sheets)
	if f.width*f.height > maxPixels {
		return fileErrorf("", "a picture of %d tasks would have %d x %d pixels, expected at most %d million; name fewer tasks, or write SVG",
			len(sheets), f.width, f.height, maxPixels>>20)
	}
	return png.Encode(w, sheetImage(f))
}
