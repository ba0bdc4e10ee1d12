package main

// catalog lists all sample tasks. The training split shows every rule once;
// most evaluation tasks are other instances of the same rules, with other
// sizes, colours or directions, so that a small model has something to carry
// over; either is a rule of its own. Removing or adding a task leaves the
// others as they are unless their rules explain each other's demonstrations.
func catalog() []sample {
	all := trainingTasks()
	return append(all, evaluationTasks()...)
}

func trainingTasks() []sample {
	const t = "training"
	return []sample{
		{"mirror-sideways", t, 4, 1, mosaic(3, 4, 1, 2, 3), mirrorSideways},
		{"rotate-quarter", t, 4, 1, mosaic(3, 3, 2, 5, 7), rotateQuarter},
		{"rotate-half", t, 4, 1, mosaic(3, 3, 1, 3, 4), rotateHalf},
		{"unfold-sideways", t, 3, 1, mosaic(3, 3, 2, 3, 6), unfoldSideways},
		{"enlarge-twice", t, 3, 1, mosaic(3, 3, 0, 5, 8), enlarge(2)},
		{"shrink-blocks", t, 3, 1, blocky(3, 3, 2, 3, 6, 9), shrink(2)},
		{"crop-to-shape", t, 4, 1, shapeInBlack(7, 7, 2, 4, 2, 4, 8), cropToContent},
		{"right-of-wall", t, 3, 1, besideDivider(3, 3, 3, 5, 1, 2, 3), rightOfWall(5)},
		{"recolor-three", t, 4, 1, mosaic(3, 3, 1, 2, 3), recolor(map[uint8]uint8{1: 5, 2: 6, 3: 8})},
		{"swap-two-colors", t, 3, 1, sparse(4, 4, 70, 4, 6), recolor(map[uint8]uint8{4: 6, 6: 4})},
		{"erase-gray", t, 3, 1, sparse(5, 5, 60, 1, 5), recolor(map[uint8]uint8{5: 0})},
		{"count-as-bar", t, 4, 1, dots(6, 6, 1, 4, 3), countAsBar(3)},
		{"overlap", t, 4, 1, halves(3, 3, 55, 5, 1, 4), combine(5, 2, both)},
		{"fall-to-floor", t, 3, 1, onFloor(6, 5, 35, 5, 1, 2), dropToFloor(5)},
		{"fill-enclosed", t, 3, 1, frames(8, 8, 1, 2, 3, 5, 3), fillEnclosed(4)},
		{"draw-border", t, 3, 1, dots(6, 6, 1, 2, 2, 4), drawBorder(8)},
		{"keep-largest", t, 3, 1, solids(8, 8, 3, 4, 1, 4, 1, 3, 6), keepLargest},
		{"erase-dots", t, 3, 1, noisySolids(8, 8, 4, 2, 7), eraseDots},
		{"color-by-size", t, 3, 1, smallPieces(7, 7, 4, 5), recolorBySize(1, 2, 3)},
		{"hollow-out", t, 3, 1, solids(8, 8, 1, 2, 3, 5, 4, 9), hollow},
		{"dots-to-rows", t, 3, 1, dots(6, 6, 1, 2, 1, 3), dotsToRows},
		{"dots-to-crosses", t, 3, 1, dots(6, 6, 1, 1, 2, 6, 8), dotsToCrosses},
		{"dots-to-diagonals", t, 3, 1, dots(6, 6, 1, 2, 4, 7), dotsToDiagonals},
		{"halo", t, 3, 1, dots(7, 7, 1, 2, 3, 6), halo(1)},
		{"connect-dots", t, 3, 1, pairsOfDots(6, 6, 2, 8), connectDots},
		{"complete-sideways", t, 3, 1, halfPicture(6, 6, 50, 1, 6), completeSideways},
		{"mark-tallest-bar", t, 3, 1, barChart(5, 3, 5), markBar(2, taller)},
		{"continue-rows", t, 3, 1, unfinishedRows(3, 8, 3, 1, 2, 4), continueRows},
	}
}

func evaluationTasks() []sample {
	const e = "evaluation"
	return []sample{
		{"mirror-sideways-square", e, 4, 1, mosaic(4, 4, 2, 6, 9), mirrorSideways},
		{"rotate-half-wide", e, 4, 1, mosaic(3, 4, 3, 5, 8), rotateHalf},
		{"unfold-down", e, 4, 1, mosaic(3, 3, 1, 4, 7), unfoldDown},
		{"crop-to-large-shape", e, 4, 1, shapeInBlack(8, 8, 3, 5, 3, 6), cropToContent},
		{"recolor-two", e, 4, 1, sparse(4, 4, 75, 2, 7), recolor(map[uint8]uint8{2: 3, 7: 9})},
		{"erase-green", e, 4, 2, sparse(5, 5, 60, 3, 6), recolor(map[uint8]uint8{3: 0})},
		{"fall-to-wall", e, 4, 1, besideWall(5, 6, 35, 8, 3, 4), pullToWall(8)},
		{"fill-enclosed-blue", e, 4, 1, frames(8, 8, 1, 2, 3, 5, 2), fillEnclosed(1)},
		{"draw-border-around", e, 4, 2, dots(7, 7, 2, 3, 1, 6), drawBorder(3)},
		{"keep-largest-of-two", e, 4, 1, solids(8, 8, 2, 3, 1, 4, 4, 8), keepLargest},
		{"hollow-out-wide", e, 4, 1, solids(7, 9, 1, 2, 3, 5, 2, 6), hollow},
		{"dots-to-columns", e, 4, 1, dots(7, 7, 1, 2, 4, 8), dotsToColumns},
		{"halo-green", e, 4, 1, dots(8, 8, 1, 2, 2, 7), halo(3)},
		{"complete-up-down", e, 4, 1, turned(halfPicture(6, 6, 50, 3, 8)), completeUpDown},
		{"count-as-bar-long", e, 4, 2, dots(8, 8, 1, 5, 6), countAsBar(6)},
		{"either", e, 4, 1, halves(3, 3, 40, 5, 2, 3), combine(5, 8, either)},
	}
}

// rivals are rules without a task of their own that must not explain the
// demonstrations of any task differently.
func rivals() []sample {
	return []sample{
		{name: "mirror up and down", apply: mirrorUpDown},
		{name: "swap rows and columns", apply: transpose},
		{name: "repeat sideways", apply: repeatSideways},
		{name: "shift right", apply: shiftRight},
		{name: "mark the shortest bar", apply: markBar(2, shorter)},
		{name: "mark the corners", apply: markCorners(2)},
	}
}
