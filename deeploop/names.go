package deeploop

// Names are those of a stack's parameters. Block is a format with the block's
// number, in front of all but Final.
type Names struct {
	Block                          string
	QKV, O, GateUp, Down           string
	AttnIn, AttnOut, MLPIn, MLPOut string // gains of the norms
	QNorm, KNorm                   string
	Final                          string // gain of the closing norm
}

// HRMNames are those of the reference's modules (sapientinc/HRM,
// models/layers.py) under a module's name; the reference has no gains.
func HRMNames(module string) Names {
	return Names{
		Block: module + ".layers.%d.",
		QKV:   "self_attn.qkv_proj.weight", O: "self_attn.o_proj.weight",
		GateUp: "mlp.gate_up_proj.weight", Down: "mlp.down_proj.weight",
		AttnIn: "attn_in_norm.weight", AttnOut: "attn_norm.weight",
		MLPIn: "mlp_in_norm.weight", MLPOut: "mlp_norm.weight",
		QNorm: "self_attn.q_norm.weight", KNorm: "self_attn.k_norm.weight",
		Final: module + ".norm.weight",
	}
}
