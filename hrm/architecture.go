package hrm

import "deeploop/deeploop"

// The architectures, by our names and the references'.
const (
	NameHRM = "hrm_v1"
	NameTRM = "trm"

	referenceHRM = "hrm.hrm_act_v1@HierarchicalReasoningModel_ACTV1"
	referenceTRM = "recursive_reasoning.trm@TinyRecursiveReasoningModel_ACTV1"
	// What the second reference calls its copy of the first one's model.
	referenceHRM2 = "recursive_reasoning.hrm@HierarchicalReasoningModel_ACTV1"
)

// OneNetwork reports whether one stack plays both roles, as in TRM: the weights
// of the slow module are those of the fast one.
func (c Config) OneNetwork() bool { return c.Name == NameTRM || c.Name == referenceTRM }

// ReferenceName is what the architecture is called in its reference's
// configurations.
func (c Config) ReferenceName() string {
	if c.OneNetwork() {
		return referenceTRM
	}
	return referenceHRM
}

// Blocks returns how many blocks a call of a module runs.
func (c Config) Blocks(m deeploop.Module) int {
	if m == deeploop.H && !c.OneNetwork() {
		return c.HLayers
	}
	return c.LLayers
}

// stacks returns how many stacks a model has.
func (c Config) stacks() int {
	if c.OneNetwork() {
		return 1
	}
	return 2
}

// schedule returns the calls of a segment. HRM keeps activations for the
// gradient in the last call of each module, TRM in the whole last cycle
// (architectures.md G.9).
func (c Config) schedule() (deeploop.Schedule, error) {
	span := deeploop.LastCall
	if c.OneNetwork() {
		span = deeploop.LastCycle
	}
	return deeploop.Cycles(c.HCycles, c.LCycles, span)
}

// Halts reports whether a row halts in training at these logits, before its
// last allowed segment.
func (c Config) Halts(qHalt, qContinue float64) bool {
	if c.NoACTContinue {
		return qHalt > 0
	}
	return qHalt > qContinue
}

// asksQTarget reports whether training runs one more segment for the target of
// q_continue.
func (c Config) asksQTarget() bool { return c.HaltMaxSteps > 1 && !c.NoACTContinue }
