// Package solve answers single ARC tasks that no training has seen: it trains
// a small reasoner on the demonstrations of one task and their augmentations
// (test-time training), or fits a trained one to them, lets augmented copies of
// every test input vote, and keeps to a budget of time or steps.
//
// What a task identifier stands for is wider than in the dataset builder. There
// every identifier is one fixed augmentation. Here it is a View: a dihedral
// transform and a way to treat colours, under which every row draws colours and
// place anew, so that a few identifiers cover all augmentations. Fixed copies
// as in the builder are a View too.
//
// A Problem holds no test outputs, so nothing here can learn from them.
package solve
