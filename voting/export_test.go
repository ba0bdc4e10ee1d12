package voting

// Sigmoid lets the tests see the halt probability of a logit.
var Sigmoid = sigmoid
