package deeploop

// Names are those of a stack's parameters. Block is a format with the block's
// number, in front of all but Final.
type Names struct {
	Block                          string
	QKV, O, GateUp, Down           string
	MixGateUp, MixDown             string // in the place of QKV and O, see Mix
	AttnIn, AttnOut, MLPIn, MLPOut string // gains of the norms
	QNorm, KNorm                   string
	Final                          string // gain of the closing norm
}
